"""The number of rows that need each pepper."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, F, QuerySet
from django.utils import timezone

from accounts.models import ApiKey, DeviceToken
from scripts_engine.encryption import key_version
from scripts_engine.models import Hook, Secret


class PepperUse(NamedTuple):
    version: int
    is_configured: bool
    api_keys: int
    device_tokens: int
    hooks: int
    secrets: int

    @property
    def is_needed(self) -> bool:
        return any((self.api_keys, self.device_tokens, self.hooks, self.secrets))


def pepper_use() -> list[PepperUse]:
    """Return the use of every version that is configured or in use, newest first.

    Sessions and recovery codes do not record their version; they become invalid with it.
    """
    keys = _with_overlaps(ApiKey.objects.filter(revoked_at__isnull=True))
    tokens = _by_version(DeviceToken.objects.filter(revoked_at__isnull=True))
    hooks = _with_overlaps(Hook.objects.filter(deleted_at__isnull=True))
    secrets = Counter(_secret_versions())
    versions = {*settings.PEPPERS, *keys, *tokens, *hooks, *secrets}
    return [
        PepperUse(
            version,
            version in settings.PEPPERS,
            keys[version],
            tokens[version],
            hooks[version],
            secrets[version],
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


def _secret_versions() -> Iterator[int]:
    for ciphertext in Secret.objects.values_list("ciphertext", flat=True).iterator():
        yield key_version(bytes(ciphertext))
