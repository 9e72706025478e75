"""A call token becomes the hook that it opens, with all that a run needs to know."""

import uuid
from dataclasses import dataclass
from functools import lru_cache

from django.db.models import Q, UUIDField
from django.utils import timezone

from accounts import credentials
from core.database.compiled_query import CompiledQuery, Parameter, parameters
from scripts_engine.models import Hook


@dataclass(frozen=True, slots=True)
class CallableHook:
    """A hook that runs something now."""

    organisation_id: uuid.UUID
    script_id: uuid.UUID
    id: uuid.UUID
    digest: str
    pepper_version: int
    script_name: str
    timeout_seconds: float
    version_id: uuid.UUID | None
    source: str | None


def find_callable_hook(
    organisation_id: uuid.UUID,
    script_id: uuid.UUID,
    call_token: str,
    *,
    hook_id: uuid.UUID | None = None,
) -> CallableHook | None:
    """The callable hook of that script whose token this is; with ``hook_id`` that one only.

    The token before the last rotation is good too, in its time. The database compares keyed
    digests, about which the time of a refusal tells nothing, and loads a row only for a right
    one, so that every refusal takes as long.
    """
    digests = credentials.digests(call_token)
    row = _query(len(digests), is_hook_named=hook_id is not None).first(
        organisation=organisation_id,
        script=script_id,
        hook=hook_id,
        digests=digests,
        now=timezone.now(),
    )
    if row is None:
        return None
    hook = CallableHook(organisation_id, script_id, *row)
    _move_under_newest_pepper(hook, call_token)
    return hook


@lru_cache(maxsize=16)
def _query(number_of_digests: int, *, is_hook_named: bool) -> CompiledQuery:
    digests = parameters("digests", Hook._meta.get_field("digest"), number_of_digests)
    now = Parameter("now", Hook._meta.get_field("previous_valid_until"))
    hooks = Hook.objects.callable().filter(
        Q(digest__in=digests) | Q(previous_digest__in=digests, previous_valid_until__gt=now),
        script__organisation=Parameter("organisation", UUIDField()),
        script=Parameter("script", UUIDField()),
    )
    if is_hook_named:
        hooks = hooks.filter(pk=Parameter("hook", UUIDField()))
    return CompiledQuery(
        hooks.order_by().values_list(
            "id",
            "digest",
            "pepper_version",
            "script__name",
            "script__timeout_seconds",
            "script__current_version_id",
            "script__current_version__source",
        )[:1]
    )


def _move_under_newest_pepper(hook: CallableHook, call_token: str) -> None:
    """After a rotation of the peppers, a success moves the token's digest along."""
    if hook.pepper_version == credentials.newest_pepper():
        return
    if credentials.matches(call_token, credentials.Digest(hook.digest, hook.pepper_version)):
        renewed = credentials.digest(call_token)
        Hook.objects.filter(pk=hook.id, digest=hook.digest).update(
            digest=renewed.value, pepper_version=renewed.pepper_version
        )
