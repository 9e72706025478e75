"""Audit events about hooks."""

from accounts.audit import Subject, record
from accounts.models import AuthEventKind, SubjectKind, User
from core.http.origin import Origin
from scripts_engine.models import Hook


def record_about_hook(
    kind: AuthEventKind, hook: Hook, origin: Origin, by: User | None = None, reason: str = ""
) -> None:
    """``reason`` never contains a value that was set."""
    record(
        kind,
        origin,
        about=Subject(SubjectKind.HOOK, hook.pk, str(hook)),
        by=by,
        organisation=hook.organisation,
        credential=hook.pk,
        reason=reason,
    )
