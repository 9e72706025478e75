"""Deletes old signing secrets, and what was noted of calls."""

from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Length
from django.utils import timezone

from core.database.batches import BATCH, delete_in_batches
from scripts_engine.models import CredentialUse, RefusalCount, RefusedCall, SigningSecret

# Retired secrets explain refused calls for so long; counters of refusals are kept for so long.
KEPT = timedelta(days=30)
# The length of a digest; ids of signing secrets are shorter.
_DIGEST_CHARACTERS = 64


def forget_retired_secrets() -> int:
    """Deletes signing secrets 30 days after their end, with the evidence of their use.

    Those of deleted hooks and scripts, which explain no call any more, are deleted at once.
    """
    gone = Q(hook__deleted_at__isnull=False) | Q(hook__script__deleted_at__isnull=False)
    retired = SigningSecret.objects.filter(Q(ends_at__lte=timezone.now() - KEPT) | gone)
    total = 0
    while deleted := forget_secrets(list(retired.order_by("pk")[:BATCH])):
        total += deleted
    return total


@transaction.atomic
def forget_secrets(secrets: list[SigningSecret]) -> int:
    """Deletes the secrets with the evidence of their use. Returns their number."""
    CredentialUse.objects.filter(
        hook__in={secret.hook_id for secret in secrets},
        credential__in=[str(secret.pk) for secret in secrets],
    ).delete()
    SigningSecret.objects.filter(pk__in=[secret.pk for secret in secrets]).delete()
    return len(secrets)


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
