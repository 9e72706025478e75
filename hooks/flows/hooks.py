"""Issues, rotates, changes, pins and deletes hooks."""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import TextChoices
from django.utils import timezone

from accounts.audit import Subject, record
from accounts.models import Organisation, User
from accounts.models.rotating_secret import validated_overlap
from core.http.origin import NOWHERE, Origin
from core.names import free_name
from hooks.audit_kinds import HookEvent, HookSubject
from hooks.call_sender import open_call_token
from hooks.flows.saving import (
    KIND,
    ChangedHook,
    changing_hook,
    changing_hooks,
    check_and_save,
    has_signing_sender,
    keep_call_token,
    locked_hooks,
)
from hooks.models import Hook
from hooks.rules import cleaned_rules
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.releases.kinds import kind_named
from scripts_engine.releases.recording import releasing

# Fields that ``update_hook`` changes, besides rules.
FIELDS = frozenset({"name", "is_enabled"})
DEFAULT_NAME = "Hook"


class IssuedHook(NamedTuple):
    hook: Hook
    call_token: str


def record_about_hook(
    kind: TextChoices, hook: Hook, origin: Origin, by: User | None = None, reason: str = ""
) -> None:
    """``reason`` never contains a value that was set."""
    record(
        kind,
        origin,
        about=Subject(HookSubject.HOOK, hook.pk, str(hook)),
        by=by,
        organisation=hook.organisation,
        credential=hook.pk,
        reason=reason,
    )


def issue_hook(
    script: Script,
    *,
    name: str = "",
    origin: Origin = NOWHERE,
    **rules: object,
) -> IssuedHook:
    """Creates a hook with a call token. Only the return value contains the token.

    Without a name, it gets a free one. ``rules`` are by their names. Raises ``ValidationError`` by
    field or ``LimitExceededError``.
    """
    return issue_new(Hook(script=script, name=name, **cleaned_rules(rules)), origin=origin)


def issue_new(hook: Hook, *, default_name: str = DEFAULT_NAME, origin: Origin) -> IssuedHook:
    """Saves a hook that is not stored yet, like ``issue_hook``."""
    call_token = hook.renew_secret()
    keep_call_token(hook, call_token)
    with releasing(hook.script.organisation_id, origin) as changes:
        changes.watch(kind_named(KIND), [hook.pk])
        if not hook.name.strip():
            names = Hook.objects.filter(script=hook.script, deleted_at=None).order_by()
            hook.name = free_name(default_name, set(names.values_list("name_key", flat=True)))
        check_and_save(changes.organisation, [ChangedHook(hook, None)], origin=origin)
    return IssuedHook(hook, call_token)


def hooks_by_id(
    organisation: Organisation, hook_ids: Collection[uuid.UUID]
) -> dict[uuid.UUID, Hook]:
    """The organisation's hooks, even deleted ones, with what GraphQL shows of each."""
    hooks = Hook.objects.ever_of_organisation(organisation)
    hooks = hooks.select_related("script", "pinned_version")
    return hooks.prefetch_related("signing_secrets", "credential_uses").in_bulk(list(hook_ids))


def rotate_call_token(
    hook: Hook, *, overlap_seconds: int = 0, origin: Origin = NOWHERE, by: User | None = None
) -> IssuedHook:
    """Gives the hook a new call token. The old one stays valid for the overlap, 0 to 7 days.

    Raises ``ValidationError`` by field.
    """
    issued = _rotate(hook, validated_overlap(overlap_seconds))
    record_about_hook(HookEvent.CALL_TOKEN_ROTATED, issued.hook, origin, by)
    return issued


@transaction.atomic
def _rotate(stale: Hook, overlap: timedelta) -> IssuedHook:
    """Locks the row, so that of two concurrent rotations the second keeps the first one's token as
    the previous one.
    """
    hook = locked_hooks(stale.organisation, [stale.pk]).get()
    call_token = hook.rotate_secret(overlap)
    keep_call_token(hook, call_token)
    hook.save(update_fields=["call_token_ciphertext", "needs_rotation"])
    return IssuedHook(hook, call_token)


def shown_again(
    hook: Hook, *, origin: Origin = NOWHERE, by: User | None = None
) -> IssuedHook | None:
    """The hook with its call token, if the token is kept and can be opened; audited."""
    ciphertext = hook.call_token_ciphertext
    if ciphertext is None or not has_signing_sender(hook):
        return None
    call_token = open_call_token(hook.pk, bytes(ciphertext))
    if call_token is None or not hook.has_secret(call_token):
        return None
    record_about_hook(HookEvent.CALL_TOKEN_SHOWN, hook, origin, by)
    return IssuedHook(hook, call_token)


def update_hook(
    hook: Hook,
    *,
    origin: Origin = NOWHERE,
    expected_revision: int | None = None,
    **changes: object,
) -> Hook:
    """Changes the given fields, out of ``FIELDS`` and the rules. Returns the changed hook.

    ``None`` resets a rule to its default. Raises what ``changing_hook`` does.
    """
    rules = cleaned_rules(changes)
    fields = {name: changes[name] for name in FIELDS & changes.keys()}
    with changing_hook(hook, origin, expected_revision=expected_revision) as changed:
        for name, value in (fields | rules).items():
            setattr(changed, name, value)
    return changed


def switch_hooks(hooks: Iterable[Hook], *, is_enabled: bool, origin: Origin = NOWHERE) -> None:
    """Enables or disables hooks, those of an organisation as one release."""
    for organisation_id, hook_ids in _by_organisation(hooks).items():
        with changing_hooks(organisation_id, hook_ids, origin) as changed:
            for hook in changed:
                hook.is_enabled = is_enabled


def _by_organisation(hooks: Iterable[Hook]) -> dict[uuid.UUID, list[uuid.UUID]]:
    ids = defaultdict(list)
    for hook in hooks:
        ids[hook.script.organisation_id].append(hook.pk)
    return ids


def pin_hook(
    hook: Hook,
    version: ScriptVersion | None,
    *,
    origin: Origin = NOWHERE,
    expected_revision: int | None = None,
) -> Hook:
    """Lets the hook run this version, whatever is live; ``None``: the live one.

    Waiting runs of the hook run it too. Raises what ``changing_hook`` does.
    """
    with changing_hook(hook, origin, expected_revision=expected_revision) as changed:
        changed.pinned_version = version
    return changed


def delete_hook(hook: Hook, *, origin: Origin = NOWHERE) -> None:
    """Deletes the hook, with immediate effect; its runs stay readable."""
    delete_hooks([hook], origin=origin)


def delete_hooks(hooks: Iterable[Hook], *, origin: Origin = NOWHERE) -> None:
    """Deletes hooks, those of an organisation as one release, like ``delete_hook``."""
    for organisation_id, hook_ids in _by_organisation(hooks).items():
        with changing_hooks(organisation_id, hook_ids, origin) as changed:
            for hook in changed:
                hook.deleted_at = timezone.now()
