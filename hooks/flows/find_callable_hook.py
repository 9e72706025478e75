"""Looks up the hook that a call token opens, with its rules and the version that it runs."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts import credentials
from accounts.credentials import Digest
from core.database.compiled_query import CompiledQuery, Parameter, parameters
from core.waiting import BatchLoader
from hooks.models import CredentialUse, Hook
from hooks.rules import COLUMNS, CallRules, rules_of_call
from scripts_engine.models import Trigger
from scripts_engine.programs import NO_PROGRAM, program_of
from scripts_engine.runs.spec import SavedRun

_COLUMNS = (
    "script__organisation",
    "script",
    "id",
    "digest",
    "pepper_version",
    "previous_digest",
    "previous_valid_until",
    "script__name",
    "script__timeout_seconds",
    # The pin stands before the live version.
    Coalesce("pinned_version_id", "script__current_version_id"),
)


class CallableHook(NamedTuple):
    """A hook that a call's token has opened."""

    id: uuid.UUID
    organisation_id: uuid.UUID
    script_id: uuid.UUID
    script_name: str
    timeout_seconds: float
    version_id: uuid.UUID | None
    """The version that the hook is pinned to, or else the script's live one."""
    rules: CallRules | None
    """What the hook demands of its calls; ``None`` if nothing of it is set."""
    overlapping_digest: str
    """The digest of the call's token, while the token before the last rotation is valid too."""
    trigger: Trigger = Trigger.HOOK

    def saved_run(self) -> SavedRun:
        """What the call runs. Reads the program, unless this process has run it recently."""
        program = NO_PROGRAM if self.version_id is None else program_of(self.version_id)
        return SavedRun(
            organisation_id=self.organisation_id,
            script_id=self.script_id,
            script_name=self.script_name,
            timeout_seconds=self.timeout_seconds,
            version_id=self.version_id,
            source=program.source,
            libraries=program.libraries,
            trigger=self.trigger,
            hook_id=self.id,
        )


def find_callable_hook(
    organisation_id: uuid.UUID,
    script_id: uuid.UUID,
    call_token: str,
    *,
    hook_id: uuid.UUID | None = None,
) -> CallableHook | None:
    """Returns what a call with this token runs, or ``None`` if no callable hook accepts it.

    With ``hook_id``, only that hook is considered. The token before the last rotation is accepted
    until its overlap ends. The database compares keyed digests, so the time that it takes reveals
    nothing about the token, and it loads a row only for a valid token.
    """
    digests = credentials.digests(call_token)
    row = _look_ups.load(_LookUp(organisation_id, script_id, hook_id, digests))
    if row is None:
        return None
    (
        _,
        _,
        found_id,
        digest,
        pepper_version,
        previous_digest,
        previous_valid_until,
        script_name,
        timeout_seconds,
        version_id,
        *rules,
    ) = row
    now = timezone.now()
    used_digest = digest if digest in digests else previous_digest
    if used_digest == digest:
        used_digest = _renewed_digest(found_id, call_token, Digest(digest, pepper_version))
    overlaps = previous_valid_until is not None and previous_valid_until > now
    return CallableHook(
        found_id,
        organisation_id,
        script_id,
        script_name,
        timeout_seconds,
        version_id,
        rules_of_call(found_id, rules, now),
        used_digest if overlaps else "",
    )


class _LookUp(NamedTuple):
    organisation_id: uuid.UUID
    script_id: uuid.UUID
    hook_id: uuid.UUID | None
    digests: list[str]
    """Of the call token, under each pepper."""

    def is_answered_by(self, row: Sequence[Any]) -> bool:
        organisation_id, script_id, hook_id, *_ = row
        return (
            organisation_id == self.organisation_id
            and script_id == self.script_id
            and self.hook_id in (None, hook_id)
        )


def _find_rows(look_ups: list[_LookUp]) -> list[Sequence[Any] | None]:
    """Returns the row of each look-up, or ``None``, by one statement.

    A second one looks for tokens before the last rotation, if some are not current. In one
    statement, PostgreSQL would expect them to be in most rows, and plan each execution anew.

    Both select by token alone. A look-up gets only the row of its own token, and only if that row
    belongs to the organisation, the script and the hook that the call names.
    """
    rows = _rows_by("digest", look_ups)
    rest = [look_up for look_up, row in zip(look_ups, rows, strict=True) if row is None]
    if not rest:
        return rows
    of_rest = iter(_rows_by("previous_digest", rest, now=timezone.now()))
    return [next(of_rest) if row is None else row for row in rows]


def _rows_by(
    column: str, look_ups: list[_LookUp], **values: datetime
) -> list[Sequence[Any] | None]:
    count = 1 << (len(look_ups) - 1).bit_length()
    # Each number of parameters is a statement of its own, so the last look-up is repeated.
    padded = look_ups + look_ups[-1:] * (count - len(look_ups))
    rows = _query(column, count, len(look_ups[0].digests)).all(
        digests=[digest for each in padded for digest in each.digests], **values
    )
    place = _COLUMNS.index(column)
    by_digest = {row[place]: row for row in rows}
    return [_row_of(each, by_digest) for each in look_ups]


def _row_of(look_up: _LookUp, by_digest: Mapping[str, Sequence[Any]]) -> Sequence[Any] | None:
    for digest in look_up.digests:
        row = by_digest.get(digest)
        if row is not None and look_up.is_answered_by(row):
            return row
    return None


_look_ups = BatchLoader(_find_rows, max_keys=16)


@lru_cache(maxsize=32)
def _query(column: str, number_of_look_ups: int, number_of_peppers: int) -> CompiledQuery:
    # Both columns are of one type.
    digest = Hook._meta.get_field("digest")
    digests = parameters("digests", digest, number_of_look_ups * number_of_peppers)
    # By the digest alone, or SQLite would read all hooks of each script.
    hooks = Hook.objects.callable().filter(**{f"{column}__in": digests})
    if column == "previous_digest":
        now = Parameter("now", Hook._meta.get_field("previous_valid_until"))
        hooks = hooks.filter(previous_valid_until__gt=now)
    return CompiledQuery(hooks.order_by().values_list(*_COLUMNS, *COLUMNS))


def _renewed_digest(hook_id: uuid.UUID, call_token: str, current: Digest) -> str:
    """Returns the digest of the hook's token, rewritten with the newest pepper.

    The evidence of the token's use goes with it.
    """
    if current.pepper_version == credentials.newest_pepper():
        return current.value
    renewed = credentials.digest(call_token)
    with transaction.atomic():
        is_renewed = Hook.objects.filter(pk=hook_id, digest=current.value).update(
            digest=renewed.value, pepper_version=renewed.pepper_version
        )
        if is_renewed:
            uses = CredentialUse.objects.filter(hook=hook_id, credential=current.value)
            uses.update(credential=renewed.value)
    # A call beside this one may have renewed it, or an administrator rotated the token.
    is_current = is_renewed or Hook.objects.filter(pk=hook_id, digest=renewed.value).exists()
    return renewed.value if is_current else current.value
