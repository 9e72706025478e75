"""Registers the script engine's admin pages when imported."""

from accounts.admin.event_parties import register_subject
from accounts.models import SubjectKind
from scripts_engine.admin import panels, queue, refused_calls, secrets, stored_values
from scripts_engine.admin.hooks import page as hooks
from scripts_engine.admin.runs import page as runs
from scripts_engine.admin.schedules import page as schedules
from scripts_engine.admin.scripts import page as scripts
from scripts_engine.admin.scripts import versions
from scripts_engine.models import Hook, Schedule, Script, Secret, StoredValue

register_subject(SubjectKind.SCRIPT, Script)
register_subject(SubjectKind.HOOK, Hook)
register_subject(SubjectKind.SCHEDULE, Schedule)
register_subject(SubjectKind.SECRET, Secret)
register_subject(SubjectKind.STORED_VALUE, StoredValue)

__all__ = [
    "hooks",
    "panels",
    "queue",
    "refused_calls",
    "runs",
    "schedules",
    "scripts",
    "secrets",
    "stored_values",
    "versions",
]
