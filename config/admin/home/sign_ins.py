"""The latest sign-ins of programs, devices and administrators."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accounts.models import AuthEvent, AuthEventKind
from config.admin.home.ago import ago
from core.admin.links import page_of

_LIMIT = 6
_KINDS = {
    AuthEventKind.SESSION_OPENED: ("Session opened", "login"),
    AuthEventKind.ADMIN_LOGIN: ("Administrator logged in", "shield_person"),
}


@dataclass(frozen=True, slots=True)
class SignIn:
    who: str
    what: str
    icon: str
    client_address: str
    url: str
    ago: str
    at: datetime


def sign_ins(events: Any) -> list[SignIn]:
    return [_sign_in(event) for event in events.sign_ins().order_by("-pk")[:_LIMIT]]


def _sign_in(event: AuthEvent) -> SignIn:
    what, icon = _KINDS[AuthEventKind(event.kind)]
    return SignIn(
        who=event.email or event.credential,
        what=what,
        icon=icon,
        client_address=event.client_address or "",
        url=page_of(event),
        ago=ago(event.at),
        at=event.at,
    )
