"""The API keys that expire soon."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from config.admin.home.ago import until
from core.admin.links import page_of

_SOON = timedelta(days=30)
_URGENT = timedelta(days=7)
_LIMIT = 5


@dataclass(frozen=True, slots=True)
class ExpiringKey:
    name: str
    key: str
    organisation: str
    url: str
    until: str
    at: datetime
    is_urgent: bool


@dataclass(frozen=True, slots=True)
class ExpiringKeys:
    keys: list[ExpiringKey]
    total: int
    has_any: bool
    """Whether any key exists, expiring or not."""
    days: int = _SOON.days

    @property
    def more(self) -> int:
        return self.total - len(self.keys)


def expiring_keys(keys: Any, *, has_any: bool) -> ExpiringKeys:
    """Return those of the keys that expire soon, the earliest first."""
    soon = keys.expiring_within(_SOON)
    urgent_at = timezone.now() + _URGENT
    return ExpiringKeys(
        keys=[
            ExpiringKey(
                name=key.name,
                key=key.key,
                organisation=key.organisation.name,
                url=page_of(key),
                until=until(key.expires_at),
                at=key.expires_at,
                is_urgent=key.expires_at <= urgent_at,
            )
            for key in soon.select_related("organisation").order_by("expires_at")[:_LIMIT]
        ],
        total=soon[: settings.ADMIN_MAX_COUNTED + 1].count(),
        has_any=has_any,
    )
