"""Issues, rotates, changes and deletes hooks."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.flows.room import check_room
from accounts.models import AuthEventKind, User
from accounts.models.rotating_secret import validated_overlap
from core.http.origin import NOWHERE, Origin
from scripts_engine.flows.definition_quota import count_definition
from scripts_engine.flows.hook_audit import record_about_hook
from scripts_engine.flows.rule_values import RULES, check_fit, cleaned_rules
from scripts_engine.models import Hook, Script

# Fields that ``update_hook`` changes, besides ``RULES``.
FIELDS = frozenset({"name", "is_enabled"})
# Longer reasons are cut in the audit log.
MAX_REASON_CHARACTERS = 60
# Columns that rules depend on; ``set_sender`` changes them.
_OF_THE_SENDER = ("sender", "hmac")


class IssuedHook(NamedTuple):
    hook: Hook
    call_token: str


def issue_hook(
    script: Script,
    *,
    name: str = "",
    origin: Origin = NOWHERE,
    by: User | None = None,
    **rules: object,
) -> IssuedHook:
    """Creates a hook with a call token. Only the return value contains the token.

    ``rules`` are out of ``RULES``. Raises ``ValidationError`` by field or ``LimitExceededError``.
    """
    hook = Hook(script=script, name=name.strip(), **cleaned_rules(rules))
    call_token = hook.renew_secret()
    hook.full_clean()
    check_fit(hook)
    with transaction.atomic():
        hooks = Hook.objects.of_organisation(hook.organisation)
        check_room(hook.organisation.pk, hooks, settings.HOOKS_PER_ORGANISATION, "hooks")
        count_definition(hook.organisation)
        hook.save()
    record_about_hook(AuthEventKind.CALL_TOKEN_ISSUED, hook, origin, by)
    return IssuedHook(hook, call_token)


def rotate_call_token(
    hook: Hook, *, overlap_seconds: int = 0, origin: Origin = NOWHERE, by: User | None = None
) -> IssuedHook:
    """Gives the hook a new call token. The old one stays valid for the overlap, 0 to 7 days.

    Raises ``ValidationError`` by field.
    """
    issued = _rotate(hook, validated_overlap(overlap_seconds))
    record_about_hook(AuthEventKind.CALL_TOKEN_ROTATED, issued.hook, origin, by)
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
    """Changes the given fields, out of ``FIELDS`` and ``RULES``.

    ``None`` resets a rule to its default. Raises ``ValidationError`` by field.
    """
    for field in FIELDS & changes.keys():
        value = changes[field]
        setattr(hook, field, value.strip() if isinstance(value, str) else value)
    rules = cleaned_rules(changes)
    for field, value in rules.items():
        setattr(hook, field, value)
    hook.full_clean()
    with transaction.atomic():
        before = Hook.objects.select_for_update().get(pk=hook.pk)
        _take_over(hook, before, (RULES | {*_OF_THE_SENDER}) - rules.keys())
        if rules:
            check_fit(hook)
        hook.save(update_fields=(FIELDS & changes.keys()) | rules.keys())
        if hook.name != before.name:
            record_about_hook(AuthEventKind.HOOK_CHANGED, hook, origin, reason="name")
        if hook.is_enabled != before.is_enabled:
            enabled, disabled = AuthEventKind.HOOK_ENABLED, AuthEventKind.HOOK_DISABLED
            record_about_hook(enabled if hook.is_enabled else disabled, hook, origin)
        changed = [field for field in rules if getattr(before, field) != rules[field]]
        if changed:
            limits_changed = AuthEventKind.HOOK_LIMITS_CHANGED
            record_about_hook(limits_changed, hook, origin, reason=_named(changed))
    return hook


def _take_over(hook: Hook, current: Hook, columns: Iterable[str]) -> None:
    """Rules are checked against the others as they are now, not as they were read."""
    for column in columns:
        setattr(hook, column, getattr(current, column))


def _named(columns: Sequence[str]) -> str:
    names = ", ".join(columns)
    return names if len(names) <= MAX_REASON_CHARACTERS else f"{len(columns)} limits"


def delete_hook(hook: Hook, *, origin: Origin = NOWHERE) -> None:
    """Deletes the hook, with immediate effect; its runs stay readable."""
    with transaction.atomic():
        if Hook.objects.existing().filter(pk=hook.pk).update(deleted_at=timezone.now()):
            record_about_hook(AuthEventKind.HOOK_DELETED, hook, origin)
