"""Checks and saves hooks together with what depends on their columns.

One hook that a person changes goes through the same functions as a hundred of a release.
"""

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import NamedTuple

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import CharField, TextChoices
from django.db.models.functions import Cast

from accounts.audit import Happened, Subject, record_all
from accounts.flows.row_limit import check_row_limit
from accounts.models import Organisation
from accounts.revisions import REVISION, revise_all
from core.errors import NotFoundError
from core.http.origin import Origin
from core.names import clean_name, name_key, name_taken
from hooks.audit_kinds import HookEvent, HookSubject
from hooks.call_sender import seal_call_token
from hooks.models import Hook
from hooks.models.hook import HookQuerySet
from hooks.rule_values import check_fit, invalid, preset_of
from hooks.rules import NAMES
from hooks.senders import Strength
from jobs.models import RunLimits
from jobs.models.queue import CallerLimits
from scripts_engine.definition_quota import ROW_BYTES, count_growth
from scripts_engine.libraries import refuse_library
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.releases.kinds import kind_named
from scripts_engine.releases.recording import releasing

# The name of hooks among what releases change.
KIND = "Hook"
# Longer reasons are cut in the audit log.
MAX_REASON_CHARACTERS = 60
_OF_THE_SENDER = frozenset(
    {
        "sender",
        "hmac",
        "verify_token_ciphertext",
        "handshake_expected_until",
        "call_token_ciphertext",
        "needs_rotation",
    }
)
_COLUMNS = frozenset({"name", "is_enabled", "pinned_version_id", "deleted_at", *NAMES})
# Looked up, or not to be looked up for each hook.
_CHECKED_HERE = frozenset(
    {"script", "name", "pinned_version", "signing_secret", "previous_signing_secret"}
)


def keep_call_token(hook: Hook, call_token: str) -> None:
    """Keeps a new token encrypted if the hook's sender signs its calls; saves nothing.

    People who may change hooks can then see the URL again, which alone runs nothing.
    """
    is_kept = has_signing_sender(hook)
    hook.call_token_ciphertext = seal_call_token(hook.pk, call_token) if is_kept else None
    hook.needs_rotation = False


def forget_call_token(hook: Hook) -> None:
    """Deletes a kept token that would run the script by itself from now on; saves nothing."""
    if hook.call_token_ciphertext is not None and not has_signing_sender(hook):
        hook.call_token_ciphertext = None
        hook.needs_rotation = True


def has_signing_sender(hook: Hook) -> bool:
    preset = preset_of(hook)
    return preset is not None and preset.strength == Strength.SIGNED


class ChangedHook(NamedTuple):
    """A hook as it is to be, and as it was: ``None`` for a new one."""

    hook: Hook
    before: Hook | None

    @property
    def changed(self) -> frozenset[str]:
        """The columns that differ; all of a new one."""
        columns, before = _COLUMNS | _OF_THE_SENDER, self.before
        if before is None:
            return columns
        return frozenset(
            name for name in columns if _value(self.hook, name) != _value(before, name)
        )

    @property
    def has_other_sender(self) -> bool:
        return not self.changed.isdisjoint({"sender", "hmac"})

    @property
    def is_added(self) -> bool:
        """Whether the hook comes to be, or comes back."""
        was_there = self.before is not None and self.before.deleted_at is None
        return self.hook.deleted_at is None and not was_there


def _value(hook: Hook, name: str) -> object:
    value = getattr(hook, name)
    return bytes(value) if isinstance(value, memoryview) else value


def problems_of(
    organisation: Organisation, changes: Sequence[ChangedHook]
) -> Iterator[tuple[Hook, ValidationError]]:
    """What is wrong with the hooks, each problem by its field.

    Takes a fixed number of statements. Cleans the hooks' names.
    """
    there = [each for each in changes if each.hook.deleted_at is None]
    ids = {each.hook.script_id for each in there}
    rows = Script.objects.of_organisation(organisation).filter(pk__in=ids)
    scripts = {script.pk: script for script in rows}
    taken = _other_names(ids, [each.hook.pk for each in changes])
    published = _published({each.hook.pinned_version_id for each in there})
    for change in there:
        hook = change.hook
        try:
            _check(change, scripts.get(hook.script_id), taken[hook.script_id], published)
        except ValidationError as problem:
            yield hook, problem
        taken[hook.script_id].add(name_key(hook.name))


def _check(
    change: ChangedHook,
    script: Script | None,
    taken: set[str],
    published: set[tuple[uuid.UUID, uuid.UUID]],
) -> None:
    hook = change.hook
    if script is None:
        raise invalid("script", "There is no such script.")
    refuse_library(script)
    hook.name = clean_name(hook.name)
    if name_key(hook.name) in taken:
        raise name_taken(hook.name)
    pin = hook.pinned_version_id
    if pin is not None and (pin, hook.script_id) not in published:
        raise invalid("version", "Choose a version of the hook's script that was published.")
    hook.clean_fields(exclude=_CHECKED_HERE)
    if not change.changed.isdisjoint(NAMES | _OF_THE_SENDER):
        check_fit(hook)


def _other_names(
    script_ids: Iterable[uuid.UUID], hook_ids: Iterable[uuid.UUID]
) -> defaultdict[uuid.UUID, set[str]]:
    """The keys of the names of the scripts' other hooks, by script."""
    others = Hook.objects.filter(script__in=script_ids, deleted_at=None).exclude(pk__in=hook_ids)
    found: defaultdict[uuid.UUID, set[str]] = defaultdict(set)
    for script_id, key in others.order_by().values_list("script_id", "name_key"):
        found[script_id].add(key)
    return found


def _published(
    version_ids: Iterable[uuid.UUID | None],
) -> set[tuple[uuid.UUID, uuid.UUID]]:
    """Those that were published, each with its script."""
    ids = {version_id for version_id in version_ids if version_id is not None}
    if not ids:
        return set()
    versions = ScriptVersion.objects.filter(pk__in=ids, draft_of="", published_at__isnull=False)
    return set(versions.order_by().values_list("pk", "script_id"))


@contextmanager
def changing_hook(
    stale: Hook, origin: Origin, *, expected_revision: int | None = None
) -> Iterator[Hook]:
    """The hook's current row, locked, to change it: what has changed is saved as one release.

    Raises ``NotFoundError`` if it was deleted, ``ConflictError`` if it is not of the expected
    revision, ``ValidationError`` by field, or ``LimitExceededError``.
    """
    with changing_hooks(stale.script.organisation_id, [stale.pk], origin) as hooks:
        if not hooks:
            raise NotFoundError("The hook is deleted.")
        hooks[0].check_revision(expected_revision)
        yield hooks[0]


@contextmanager
def changing_hooks(
    organisation_id: uuid.UUID,
    hook_ids: Collection[uuid.UUID],
    origin: Origin,
) -> Iterator[list[Hook]]:
    """Those of the organisation's hooks that exist, otherwise like ``changing_hook``."""
    with releasing(organisation_id, origin) as changes:
        changes.watch(kind_named(KIND), hook_ids)
        hooks = list(locked_hooks(changes.organisation, hook_ids).existing())
        before = [copy(hook) for hook in hooks]
        yield hooks
        changed = [ChangedHook(*each) for each in zip(hooks, before, strict=True)]
        check_and_save(changes.organisation, changed, origin=origin)


def locked_hooks(organisation: Organisation, hook_ids: Collection[uuid.UUID]) -> HookQuerySet:
    """The hooks' current rows, even deleted ones, locked until the end of the transaction."""
    # Not for their keys, or what refers to the hooks would wait.
    rows = Hook.objects.select_for_update(no_key=True, of=("self",))
    rows = rows.select_related("script__organisation").order_by("pk")
    return rows.ever_of_organisation(organisation).filter(pk__in=hook_ids)


def check_and_save(
    organisation: Organisation,
    changes: Sequence[ChangedHook],
    *,
    origin: Origin,
) -> None:
    """Raises ``ValidationError`` by field or ``LimitExceededError``."""
    for _, problem in problems_of(organisation, changes):
        raise problem
    save_hooks(organisation, changes, origin=origin)


def save_hooks(
    organisation: Organisation,
    changes: Sequence[ChangedHook],
    *,
    origin: Origin,
) -> None:
    """Saves hooks without problems, in a transaction that locks the organisation and the hooks.

    Counts revisions, tells the queue, records events. Takes a fixed number of statements for up to
    28 hooks on SQLite, and for any number on PostgreSQL. Raises ``LimitExceededError``.
    """
    changes = [each for each in changes if each.changed]
    new = [each.hook for each in changes if each.before is None]
    kept = [each.hook for each in changes if each.before is not None]
    added = sum(each.is_added for each in changes)
    if added:
        hooks, most = Hook.objects.of_organisation(organisation), settings.HOOKS_PER_ORGANISATION
        check_row_limit(organisation.pk, hooks, most, "hooks", more=added)
    for hook in new:
        hook.revision = 0
    revise_all([*new, *kept], organisation.pk, origin)
    if kept:
        _update(kept, changes)
    if new:
        count_growth(organisation, len(new) * ROW_BYTES)
        # Of these, some may have the names of hooks that were deleted or renamed.
        Hook.objects.bulk_create(new)
    RunLimits.objects.set_all({each.hook.pk: _limits_of(each.hook) for each in changes})
    events = [event for each in changes for event in _events(each)]
    record_all(origin, organisation, events)


def _limits_of(hook: Hook) -> CallerLimits:
    """What the queue, which does not know hooks, must know of this one."""
    return CallerLimits(hook.max_concurrent_runs, hook.max_attempts, hook.pinned_version_id)


def _update(hooks: Sequence[Hook], changes: Sequence[ChangedHook]) -> None:
    columns = frozenset().union(*(each.changed for each in changes))
    moved = [
        each.hook.pk
        for each in changes
        if each.before is not None and not each.changed.isdisjoint({"name", "deleted_at"})
    ]
    if len(moved) > 1:
        # They may take each other's names, and databases check the constraint after each row.
        Hook.objects.filter(pk__in=moved).update(name_key=Cast("pk", CharField()))
    for hook in hooks:
        hook.name_key = name_key(hook.name)
    names = {name.removesuffix("_id") for name in columns | REVISION | {"name_key"}}
    Hook.objects.bulk_update(hooks, sorted(names))


def _events(change: ChangedHook) -> Iterator[Happened]:
    hook, before, changed = change.hook, change.before, change.changed
    if before is None:
        yield event_of(HookEvent.CALL_TOKEN_ISSUED, hook)
        if hook.sender:
            yield event_of(HookEvent.SENDER_SET, hook, hook.sender)
        return
    if "deleted_at" in changed:
        restored, deleted = HookEvent.HOOK_RESTORED, HookEvent.HOOK_DELETED
        yield event_of(deleted if hook.deleted_at else restored, hook)
    if "name" in changed:
        yield event_of(HookEvent.HOOK_CHANGED, hook, "name")
    if "is_enabled" in changed:
        enabled, disabled = HookEvent.HOOK_ENABLED, HookEvent.HOOK_DISABLED
        yield event_of(enabled if hook.is_enabled else disabled, hook)
    if "pinned_version_id" in changed:
        pinned, unpinned = HookEvent.HOOK_PINNED, HookEvent.HOOK_UNPINNED
        yield event_of(pinned if hook.pinned_version_id else unpinned, hook)
    if change.has_other_sender:
        # Rules that do not fit the sender change with it.
        chosen, removed = HookEvent.SENDER_SET, HookEvent.SENDER_REMOVED
        yield event_of(chosen if hook.sender else removed, hook, hook.sender)
    elif rules := sorted(NAMES & changed):
        yield event_of(HookEvent.HOOK_LIMITS_CHANGED, hook, _named(rules))


def event_of(kind: TextChoices, hook: Hook, reason: str = "") -> Happened:
    """``reason`` never contains a value that was set."""
    about = Subject(HookSubject.HOOK, hook.pk, str(hook))
    return Happened(kind, about, reason, credential=hook.pk)


def _named(columns: Sequence[str]) -> str:
    names = ", ".join(columns)
    return names if len(names) <= MAX_REASON_CHARACTERS else f"{len(columns)} limits"
