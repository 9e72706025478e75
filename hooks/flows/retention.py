"""Deletes old rows; tells the apps below what hooks do when rows go, and who called."""

import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Exists, F, IntegerField, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Length
from django.utils import timezone

from accounts.models import Organisation
from accounts.models.rotating_secret import count_by_pepper
from core.admin.links import page_of
from core.database.batches import BATCH, delete_in_batches
from core.encryption import Ciphertext, register_ciphertext, register_digests
from core.upkeep import register_duties
from hooks.call_sender import CALL_TOKENS, SECRETS, VERIFY_TOKENS
from hooks.flows.idempotency import keep_outcomes
from hooks.flows.senders import forget_secrets
from hooks.models import (
    CredentialUse,
    Hook,
    IdempotencyKey,
    RefusalCount,
    RefusedCall,
    SigningSecret,
)
from hooks.models.refused_call import CONTENTS
from jobs.models import RunLimits
from scripts_engine.callers import Caller, register_callers
from scripts_engine.definition_quota import ROW_BYTES
from scripts_engine.models import ReleaseChange, Run, Script
from scripts_engine.runs.retention import (
    before_runs_are_deleted,
    forget_with_scripts,
    when_script_is_deleted,
)

# Retired secrets explain refused calls for so long; counters of refusals are kept for so long.
KEPT = timedelta(days=30)
# The length of a digest; ids of signing secrets are shorter.
_DIGEST_CHARACTERS = 64


def deleted_hooks(organisation: Organisation, before: datetime) -> "QuerySet[Any]":
    """Hooks that no run names any more, and no release, which may be undone."""
    return Hook.objects.filter(
        Q(deleted_at__lte=before) | Q(script__deleted_at__lte=before),
        ~Exists(Run.objects.filter(hook_id=OuterRef("pk"))),
        ~Exists(ReleaseChange.objects.filter(object_id=OuterRef("pk"))),
        script__organisation=organisation,
    ).annotate(bytes=Value(ROW_BYTES, output_field=IntegerField()))


def delete_hooks_of(script: Script) -> None:
    """Deletes the hooks of a script that is being deleted, in the caller's release.

    Otherwise a release that brings back the script alone would bring back its hooks, too.
    """
    hooks = Hook.objects.filter(script=script, deleted_at=None)
    hooks.update(deleted_at=timezone.now(), revision=F("revision") + 1)


def forget_retired_secrets() -> int:
    """Deletes signing secrets 30 days after their end, with the evidence of their use.

    Those of deleted hooks and scripts go as long after the deletion: until then, it can be undone.
    """
    end = timezone.now() - KEPT
    gone = Q(hook__deleted_at__lte=end) | Q(hook__script__deleted_at__lte=end)
    retired = SigningSecret.objects.filter(Q(ends_at__lte=end) | gone)
    total = 0
    while deleted := forget_secrets(list(retired.order_by("pk")[:BATCH])):
        total += deleted
    return total


def forget_unused_tokens() -> int:
    """Deletes the evidence of the use of call tokens that their hooks no longer have."""
    uses = CredentialUse.objects.annotate(characters=Length("credential"))
    of_tokens = uses.filter(characters=_DIGEST_CHARACTERS, last_used_at__lte=timezone.now() - KEPT)
    current = Q(credential=F("hook__digest")) | Q(credential=F("hook__previous_digest"))
    return delete_in_batches(of_tokens.exclude(current))


def forget_refusal_counts() -> int:
    """Deletes counters of refusals 30 days after their day."""
    first_day = datetime.now(UTC).date() - KEPT
    return delete_in_batches(RefusalCount.objects.filter(day__lt=first_day), order=("day", "pk"))


def forget_refused_calls() -> int:
    """Deletes the refused calls of scripts and hooks that were deleted."""
    gone = Q(script__deleted_at__isnull=False) | Q(hook__deleted_at__isnull=False)
    stored = Coalesce(Length("content_ciphertext"), 0)
    return delete_in_batches(RefusedCall.objects.filter(gone), row_bytes=stored)


def forget_run_limits() -> int:
    """Deletes the limits of hooks that are no longer there. Returns their number."""
    is_there = Exists(Hook.objects.filter(pk=OuterRef("caller_id")))
    return delete_in_batches(RunLimits.objects.filter(~is_there))


def forget_expired_deliveries() -> int:
    expired = IdempotencyKey.objects.expired()
    return delete_in_batches(expired, order=("expires_at",))


def hooks_by_pepper() -> Counter[int]:
    return count_by_pepper(Hook.objects.filter(deleted_at__isnull=True))


class HookCallers:
    """Hooks as the callers of runs, for the app that keeps the runs."""

    def find(self, caller_ids: Collection[uuid.UUID]) -> Mapping[uuid.UUID, Caller]:
        hooks = Hook.objects.filter(pk__in=caller_ids).order_by()
        return {
            hook.pk: Caller(str(hook), hook.deleted_at is not None, page_of(hook))
            for hook in hooks.only("name", "deleted_at")
        }

    def belongs_to(self, caller_id: uuid.UUID, organisation: Organisation) -> bool:
        return Hook.objects.ever_of_organisation(organisation).filter(pk=caller_id).exists()


def register() -> None:
    register_callers(HookCallers())
    register_digests("hooks", hooks_by_pepper)
    register_duties(
        forget_expired_deliveries,
        forget_refused_calls,
        # After forget_refused_calls: the secrets are what is hidden on the pages of these calls.
        forget_retired_secrets,
        forget_unused_tokens,
        forget_refusal_counts,
        forget_run_limits,
    )
    before_runs_are_deleted(keep_outcomes)
    forget_with_scripts(deleted_hooks)
    when_script_is_deleted(delete_hooks_of)
    for ciphertext in (
        Ciphertext(
            "signing_secrets", SigningSecret, "ciphertext", SECRETS, lambda row: row.hook_id
        ),
        Ciphertext(
            "signing_secrets", Hook, "verify_token_ciphertext", VERIFY_TOKENS, lambda row: row.pk
        ),
        Ciphertext(
            "kept_call_tokens", Hook, "call_token_ciphertext", CALL_TOKENS, lambda row: row.pk
        ),
        Ciphertext(
            "refused_calls", RefusedCall, "content_ciphertext", CONTENTS, lambda row: row.pk
        ),
    ):
        register_ciphertext(ciphertext)
