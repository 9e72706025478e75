"""Issues, rotates, changes and deletes hooks."""

from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts.audit import Subject, record
from accounts.models import AuthEventKind, SubjectKind, User
from accounts.models.rotating_secret import validated_overlap
from core.http.origin import NOWHERE, Origin
from scripts_engine.models import Hook, Script

# Fields that ``update_hook`` changes.
FIELDS = frozenset({"name", "is_enabled"})


class IssuedHook(NamedTuple):
    hook: Hook
    call_token: str


def issue_hook(
    script: Script, *, name: str = "", origin: Origin = NOWHERE, by: User | None = None
) -> IssuedHook:
    """Creates a hook with a call token. Only the return value contains the token.

    Raises ``ValidationError`` by field.
    """
    hook = Hook(script=script, name=name.strip())
    call_token = hook.renew_secret()
    hook.full_clean()
    hook.save()
    _record(AuthEventKind.CALL_TOKEN_ISSUED, hook, origin, by)
    return IssuedHook(hook, call_token)


def _record(
    kind: AuthEventKind, hook: Hook, origin: Origin, by: User | None = None, reason: str = ""
) -> None:
    record(
        kind,
        origin,
        about=Subject(SubjectKind.HOOK, hook.pk, str(hook)),
        by=by,
        organisation=hook.organisation,
        credential=hook.pk,
        reason=reason,
    )


def rotate_call_token(
    hook: Hook, *, overlap_seconds: int = 0, origin: Origin = NOWHERE, by: User | None = None
) -> IssuedHook:
    """Gives the hook a new call token. The old one stays valid for the overlap, 0 to 7 days.

    Raises ``ValidationError`` by field.
    """
    issued = _rotate(hook, validated_overlap(overlap_seconds))
    _record(AuthEventKind.CALL_TOKEN_ROTATED, issued.hook, origin, by)
    return issued


@transaction.atomic
def _rotate(stale: Hook, overlap: timedelta) -> IssuedHook:
    """Locks the row, so that of two concurrent rotations the second keeps the first one's token as
    the previous one.
    """
    rows = Hook.objects.select_for_update(of=("self",)).select_related("script__organisation")
    hook = rows.get(pk=stale.pk)
    return IssuedHook(hook, hook.rotate_secret(overlap))


def update_hook(hook: Hook, *, origin: Origin = NOWHERE, **changes: object) -> Hook:
    """Changes the given fields, out of ``FIELDS``. Raises ``ValidationError`` by field."""
    for field in FIELDS & changes.keys():
        value = changes[field]
        setattr(hook, field, value.strip() if isinstance(value, str) else value)
    hook.full_clean()
    with transaction.atomic():
        before = Hook.objects.select_for_update().get(pk=hook.pk)
        hook.save(update_fields=FIELDS & changes.keys())
        if hook.name != before.name:
            _record(AuthEventKind.HOOK_CHANGED, hook, origin, reason="name")
        if hook.is_enabled != before.is_enabled:
            enabled, disabled = AuthEventKind.HOOK_ENABLED, AuthEventKind.HOOK_DISABLED
            _record(enabled if hook.is_enabled else disabled, hook, origin)
    return hook


def delete_hook(hook: Hook, *, origin: Origin = NOWHERE) -> None:
    """Deletes the hook, with immediate effect; its runs stay readable."""
    with transaction.atomic():
        if Hook.objects.existing().filter(pk=hook.pk).update(deleted_at=timezone.now()):
            _record(AuthEventKind.HOOK_DELETED, hook, origin)
