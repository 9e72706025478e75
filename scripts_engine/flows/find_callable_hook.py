"""Looks up the hook that a call token opens, with everything that its run needs."""

import uuid
from functools import lru_cache

from django.db.models import Q, UUIDField
from django.utils import timezone

from accounts import credentials
from accounts.credentials import Digest
from core.database.compiled_query import CompiledQuery, Parameter, parameters
from scripts_engine.flows.run_script import RunSpec
from scripts_engine.models import Hook, Trigger


def find_callable_hook(
    organisation_id: uuid.UUID,
    script_id: uuid.UUID,
    call_token: str,
    *,
    hook_id: uuid.UUID | None = None,
) -> RunSpec | None:
    """Returns what a call with this token runs, or ``None`` if no callable hook accepts it.

    With ``hook_id``, only that hook is considered. The token before the last rotation is accepted
    until its overlap ends. The database compares keyed digests, so the time that it takes reveals
    nothing about the token, and it loads a row only on a match: every refusal costs the same.
    """
    digests = credentials.digests(call_token)
    row = _query(len(digests), is_hook_given=hook_id is not None).first(
        organisation=organisation_id,
        script=script_id,
        hook=hook_id,
        digests=digests,
        now=timezone.now(),
    )
    if row is None:
        return None
    found_id, digest, pepper_version, script_name, timeout_seconds, version_id, source = row
    _renew_digest(found_id, call_token, Digest(digest, pepper_version))
    return RunSpec(
        organisation_id=organisation_id,
        script_id=script_id,
        script_name=script_name,
        timeout_seconds=timeout_seconds,
        version_id=version_id,
        source=source or "",
        trigger=Trigger.HOOK,
        hook_id=found_id,
    )


@lru_cache(maxsize=16)
def _query(number_of_digests: int, *, is_hook_given: bool) -> CompiledQuery:
    digests = parameters("digests", Hook._meta.get_field("digest"), number_of_digests)
    now = Parameter("now", Hook._meta.get_field("previous_valid_until"))
    hooks = Hook.objects.callable().filter(
        Q(digest__in=digests) | Q(previous_digest__in=digests, previous_valid_until__gt=now),
        script__organisation=Parameter("organisation", UUIDField()),
        script=Parameter("script", UUIDField()),
    )
    if is_hook_given:
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


def _renew_digest(hook_id: uuid.UUID, call_token: str, current: Digest) -> None:
    """Rewrites the digest with the newest pepper, if it uses an older one.

    A call with the token before the last rotation leaves it alone.
    """
    if current.pepper_version == credentials.newest_pepper():
        return
    if credentials.matches(call_token, current):
        renewed = credentials.digest(call_token)
        Hook.objects.filter(pk=hook_id, digest=current.value).update(
            digest=renewed.value, pepper_version=renewed.pepper_version
        )
