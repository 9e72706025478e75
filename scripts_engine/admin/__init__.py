"""Registers the script engine's admin pages when imported."""

from accounts.admin.event_words import register_subject, register_words
from accounts.admin.organisations import register_activity, register_storage_in_use
from core.admin.display import WARNING
from scripts_engine.admin import organisations, panels, secrets, stored_values
from scripts_engine.admin.activity import cells_of_organisations
from scripts_engine.admin.releases import page as releases
from scripts_engine.admin.run_storage import run_storage_bar
from scripts_engine.admin.scripts import versions
from scripts_engine.audit_kinds import ScriptEvent, ScriptSubject
from scripts_engine.models import Script, Secret, StoredValue

register_words(
    {
        ScriptEvent.SCRIPT_DISABLED: WARNING,
        ScriptEvent.SCRIPT_DELETED: WARNING,
        ScriptEvent.SECRET_DELETED: WARNING,
        ScriptEvent.ALERT_SCRIPT_REMOVED: WARNING,
    },
    changes=[ScriptEvent.SCRIPT_CHANGED],
    fields={"timeout_seconds": "time limit", "max_attempts": "attempts"},
)
register_storage_in_use(run_storage_bar)
register_activity(cells_of_organisations)
register_subject(ScriptSubject.SCRIPT, Script)
register_subject(ScriptSubject.SECRET, Secret)
register_subject(ScriptSubject.STORED_VALUE, StoredValue)

__all__ = ["organisations", "panels", "releases", "secrets", "stored_values", "versions"]
