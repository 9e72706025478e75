"""Which peppers are still needed, and by how much."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, QuerySet

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
    """Of every version that is configured or in use, newest first.

    Sessions do not say under which one they are: they end with it, and their owners log in again.
    """
    keys = _by_version(ApiKey.objects.filter(revoked_at__isnull=True))
    tokens = _by_version(DeviceToken.objects.filter(revoked_at__isnull=True))
    hooks = _by_version(Hook.objects.filter(deleted_at__isnull=True))
    secrets: dict[int, int] = {}
    for version in _secret_versions():
        secrets[version] = secrets.get(version, 0) + 1
    versions = {*settings.PEPPERS, *keys, *tokens, *hooks, *secrets}
    return [
        PepperUse(
            version,
            version in settings.PEPPERS,
            keys.get(version, 0),
            tokens.get(version, 0),
            hooks.get(version, 0),
            secrets.get(version, 0),
        )
        for version in sorted(versions, reverse=True)
    ]


def _by_version(rows: QuerySet[Any]) -> dict[int, int]:
    counted = rows.order_by().values_list("pepper_version").annotate(Count("pk"))
    return dict(counted)


def _secret_versions() -> Iterator[int]:
    for ciphertext in Secret.objects.values_list("ciphertext", flat=True).iterator():
        yield key_version(bytes(ciphertext))
