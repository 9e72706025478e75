"""Who gets in: API keys that expire soon, the latest sign-ins, and failed admin logins."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from accounts.models import AuthEvent, AuthEventKind
from config.admin.parameters import CappedPaginator
from core.admin.links import list_of, page_of
from core.database.ids import since

_SOON = timedelta(days=30)
_URGENT = timedelta(days=7)
_KEYS_SHOWN = 5
_SIGN_INS_SHOWN = 6
_FAILURES_SHOWN = timedelta(hours=24)
_KINDS = {
    AuthEventKind.SESSION_OPENED: ("Session opened", "login"),
    AuthEventKind.ADMIN_LOGIN: ("Administrator logged in", "shield_person"),
}


@dataclass(frozen=True, slots=True)
class ExpiringKey:
    name: str
    key: str
    organisation: str
    url: str
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
                at=key.expires_at,
                is_urgent=key.expires_at <= urgent_at,
            )
            for key in soon.select_related("organisation").order_by("expires_at")[:_KEYS_SHOWN]
        ],
        total=soon[: settings.ADMIN_MAX_COUNTED + 1].count(),
        has_any=has_any,
    )


@dataclass(frozen=True, slots=True)
class SignIn:
    who: str
    what: str
    icon: str
    client_address: str
    url: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FailedLogins:
    """A day's failed admin logins, and the list that shows exactly these."""

    number: str
    url: str


def failed_logins(events: Any, now: datetime) -> FailedLogins:
    """Counts up to the limit of the list, from a whole minute, which is what its filter takes."""
    begin = (now - _FAILURES_SHOWN).replace(second=0, microsecond=0)
    kind = AuthEventKind.ADMIN_LOGIN_REFUSED.value
    failed = events.of_kind(kind).filter(since("at", begin))
    return FailedLogins(
        CappedPaginator(failed, 1).count_in_words,
        list_of(
            AuthEvent,
            kind__exact=kind,
            at_from_0=f"{begin:%Y-%m-%d}",
            at_from_1=f"{begin:%H:%M}",
        ),
    )


def sign_ins(events: Any) -> list[SignIn]:
    return [_sign_in(event) for event in events.sign_ins().order_by("-pk")[:_SIGN_INS_SHOWN]]


def _sign_in(event: AuthEvent) -> SignIn:
    what, icon = _KINDS[AuthEventKind(event.kind)]
    return SignIn(
        who=event.actor_label or event.email or event.credential,
        what=what,
        icon=icon,
        client_address=event.client_address or "",
        url=page_of(event),
        at=event.at,
    )
