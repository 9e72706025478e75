"""Looks up the hook that a call token opens, with everything that its run needs."""

import uuid
from functools import lru_cache

from django.db import transaction
from django.db.models import Q, UUIDField
from django.utils import timezone

from accounts import credentials
from accounts.credentials import Digest
from core.database.compiled_query import CompiledQuery, Parameter, parameters
from scripts_engine.flows.rules_of_call import COLUMNS, rules_of_call
from scripts_engine.flows.run_spec import RunSpec
from scripts_engine.models import CredentialUse, Hook, Trigger

_COLUMNS = (
    "id",
    "digest",
    "pepper_version",
    "previous_digest",
    "previous_valid_until",
    "script__name",
    "script__timeout_seconds",
    "script__current_version_id",
    "script__current_version__source",
)


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
    now = timezone.now()
    row = _query(len(digests), is_hook_given=hook_id is not None).first(
        organisation=organisation_id,
        script=script_id,
        hook=hook_id,
        digests=digests,
        now=now,
    )
    if row is None:
        return None
    (
        found_id,
        digest,
        pepper_version,
        previous_digest,
        previous_valid_until,
        script_name,
        timeout_seconds,
        version_id,
        source,
        *rules,
    ) = row
    used_digest = digest if digest in digests else previous_digest
    if used_digest == digest:
        used_digest = _renewed_digest(found_id, call_token, Digest(digest, pepper_version))
    overlaps = previous_valid_until is not None and previous_valid_until > now
    return RunSpec(
        organisation_id=organisation_id,
        script_id=script_id,
        script_name=script_name,
        timeout_seconds=timeout_seconds,
        version_id=version_id,
        source=source or "",
        trigger=Trigger.HOOK,
        hook_id=found_id,
        rules=rules_of_call(rules, now),
        overlapping_digest=used_digest if overlaps else "",
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
    return CompiledQuery(hooks.order_by().values_list(*_COLUMNS, *COLUMNS)[:1])


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
    return renewed.value if is_renewed else current.value
