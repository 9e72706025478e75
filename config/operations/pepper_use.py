"""The number of rows that need each pepper."""

from collections import Counter
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import BinaryField, Count, F, QuerySet
from django.db.models.functions import Substr
from django.utils import timezone

from accounts.models import ApiKey, DeviceToken
from core.encryption import VERSION_BYTES, key_version
from scripts_engine.models import Hook, QueueEntry, RefusedCall, Secret, SigningSecret


class PepperUse(NamedTuple):
    version: int
    is_configured: bool
    api_keys: int
    device_tokens: int
    hooks: int
    secrets: int
    signing_secrets: int
    """With the verify tokens of hooks."""
    refused_calls: int
    queued_calls: int
    """Those of which the record of the run hides parts."""

    @property
    def is_needed(self) -> bool:
        return any(
            (
                self.api_keys,
                self.device_tokens,
                self.hooks,
                self.secrets,
                self.signing_secrets,
                self.refused_calls,
                self.queued_calls,
            )
        )


def pepper_use() -> list[PepperUse]:
    """Return the use of every version that is configured or in use, newest first.

    Sessions and recovery codes do not record their version; they become invalid with it.
    """
    keys = _with_overlaps(ApiKey.objects.filter(revoked_at__isnull=True))
    tokens = _by_version(DeviceToken.objects.filter(revoked_at__isnull=True))
    hooks = _with_overlaps(Hook.objects.filter(deleted_at__isnull=True))
    secrets = _by_ciphertext(Secret.objects.all(), "ciphertext")
    signing_secrets = _by_ciphertext(SigningSecret.objects.all(), "ciphertext")
    signing_secrets += _by_ciphertext(Hook.objects.all(), "verify_token_ciphertext")
    refused_calls = _by_ciphertext(RefusedCall.objects.all(), "content_ciphertext")
    queued_calls = _by_ciphertext(QueueEntry.objects.all(), "hidden_ciphertext")
    versions = {
        *settings.PEPPERS,
        *keys,
        *tokens,
        *hooks,
        *secrets,
        *signing_secrets,
        *refused_calls,
        *queued_calls,
    }
    return [
        PepperUse(
            version,
            version in settings.PEPPERS,
            keys[version],
            tokens[version],
            hooks[version],
            secrets[version],
            signing_secrets[version],
            refused_calls[version],
            queued_calls[version],
        )
        for version in sorted(versions, reverse=True)
    ]


def _with_overlaps(rows: QuerySet[Any]) -> Counter[int]:
    """Count rows by version; during the overlap of a rotation also by the previous version."""
    in_overlap = rows.filter(previous_valid_until__gt=timezone.now()).exclude(
        previous_pepper_version=F("pepper_version")
    )
    return _by_version(rows) + _by_version(in_overlap, "previous_pepper_version")


def _by_version(rows: QuerySet[Any], column: str = "pepper_version") -> Counter[int]:
    counted = rows.order_by().values_list(column).annotate(Count("pk"))
    return Counter(dict(counted))


def _by_ciphertext(rows: QuerySet[Any], column: str) -> Counter[int]:
    """Count rows by the version that their ciphertext names; only its beginning is read."""
    beginnings = (
        rows.filter(**{f"{column}__isnull": False})
        .order_by()
        .annotate(beginning=Substr(column, 1, VERSION_BYTES, output_field=BinaryField()))
        .values_list("beginning", flat=True)
    )
    return Counter(key_version(bytes(beginning)) for beginning in beginnings.iterator())
