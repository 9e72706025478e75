"""Which of its scripts an organisation has told of alerts."""

from django.db import transaction

from accounts.flows.organisations import record_about_organisation
from accounts.models import Organisation
from accounts.revisions import REVISION, revise
from core.http.origin import NOWHERE, Origin
from scripts_engine.audit_kinds import ScriptEvent
from scripts_engine.libraries import refuse_library
from scripts_engine.models import Script


def alert_script_of(organisation: Organisation) -> Script | None:
    """The script, which may be disabled; ``None`` if there is none or it is deleted.

    Its id stays with the organisation when the script is deleted, so that it is the alert script
    again if that is undone.
    """
    if organisation.alert_script_id is None:
        return None
    scripts = Script.objects.of_organisation(organisation)
    return scripts.filter(pk=organisation.alert_script_id).first()


def set_alert_script(
    organisation: Organisation, script: Script | None, *, origin: Origin = NOWHERE
) -> Organisation:
    """Makes one of the organisation's scripts its alert script, or none. Returns the changed row.

    Raises ``ValidationError`` for a library.
    """
    if script is not None:
        refuse_library(script)
    with transaction.atomic():
        stored = Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        chosen = None if script is None else script.pk
        if stored.alert_script_id == chosen:
            return stored
        stored.alert_script_id = chosen
        revise(stored, stored.pk, origin)
        stored.save(update_fields={"alert_script_id", *REVISION})
    if script is None:
        record_about_organisation(ScriptEvent.ALERT_SCRIPT_REMOVED, stored, origin)
    else:
        record_about_organisation(ScriptEvent.ALERT_SCRIPT_SET, stored, origin, script.name)
    return stored
