"""Which of its scripts an organisation has told of alerts."""

from django.db import transaction

from accounts.flows.organisations import record_about_organisation
from accounts.models import Organisation
from accounts.revisions import REVISION, revise
from core.http.origin import NOWHERE, Origin
from scripts_engine.audit_kinds import ScriptEvent
from scripts_engine.libraries import refuse_library
from scripts_engine.models import AlertScript, Script


def alert_script_of(organisation: Organisation) -> Script | None:
    """The script, which may be disabled; ``None`` if there is none or it is deleted."""
    return Script.objects.of_organisation(organisation).filter(alerts__isnull=False).first()


def set_alert_script(
    organisation: Organisation, script: Script | None, *, origin: Origin = NOWHERE
) -> None:
    """Makes one of the organisation's scripts its alert script, or none.

    Raises ``ValidationError`` for a library.
    """
    if script is not None:
        refuse_library(script)
    with transaction.atomic():
        stored = Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
        if alert_script_of(stored) == script:
            return
        if script is None:
            AlertScript.objects.filter(organisation=stored).delete()
        else:
            AlertScript.objects.update_or_create(organisation=stored, defaults={"script": script})
        revise(stored, stored.pk, origin)
        stored.save(update_fields=REVISION)
    kind = ScriptEvent.ALERT_SCRIPT_REMOVED if script is None else ScriptEvent.ALERT_SCRIPT_SET
    record_about_organisation(kind, stored, origin, "" if script is None else script.name)
