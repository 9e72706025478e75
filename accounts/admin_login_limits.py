"""How often a password may be tried at the admin's login, and what is locked by it at present.

A try is counted before its password is hashed. Three windows count it: the client's, that of the
user at this client, and that of the user from anywhere. A browser in which the user has logged in
before has a window of its own instead, so that no stranger locks the owner out.
"""

import datetime as dt
from contextlib import suppress
from typing import NamedTuple

from django.utils import timezone

from accounts.models import AuthEvent, AuthEventKind, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import (
    Count,
    forget,
    full_until,
    hit,
    network_of,
    refuse_if_full,
)
from core.database.ids import first_id_at
from core.errors import RateLimitedError

# As long as the longest of the windows of a user.
_LOOKS_BACK = dt.timedelta(hours=1)


class LockedPlace(NamedTuple):
    """``where`` is a client's address or network; empty for a browser that is known."""

    where: str
    until: dt.datetime


def counts_of_try(email: str, client_address: str, browser: str | None) -> tuple[Count, ...]:
    """The narrowest window that a flood fills comes first; ``browser`` is a known one's id."""
    if browser is not None:
        return (_of_browser(email, browser),)
    network = network_of(client_address)
    return (
        Count(windows.ADMIN_LOGIN_FAILURES_OF_CLIENT, ("admin-login-client", network)),
        _at_client(email, network),
        _of_user(email),
    )


def count_login(email: str) -> None:
    """After a right password."""
    count = _of_logins(email)
    with suppress(RateLimitedError):
        hit([count.window], *count.identifiers)


def refuse_too_many_logins(email: str) -> None:
    """Raises ``CountFullError`` where right passwords were given too often.

    Only they count here, so nobody else locks the user out by it.
    """
    refuse_if_full(_of_logins(email))


def forgive_here(email: str, client_address: str, browser: str | None) -> None:
    """After a success: forgets what was mistyped here, and nothing that came from elsewhere."""
    if browser is not None:
        forget(_of_browser(email, browser))
    else:
        forget(_at_client(email, network_of(client_address)))


def forgive_everywhere(user: User) -> None:
    """An administrator's unlock."""
    for count in (_of_user(user.email), _of_logins(user.email), *_counts_of_places(user)):
        forget(count)


def locked_everywhere_until(user: User) -> dt.datetime | None:
    """While this lasts, the user logs in only in browsers that are known."""
    return _end(_of_user(user.email))


def locked_places(user: User) -> list[LockedPlace]:
    """Clients and known browsers from which the user does not log in for now."""
    ends = {count.identifiers: _end(count) for count in _counts_of_places(user)}
    return [
        LockedPlace(identifiers[2] if identifiers[0] == _AT_CLIENT else "", end)
        for identifiers, end in ends.items()
        if end is not None
    ]


def _counts_of_places(user: User) -> list[Count]:
    """Where passwords of the user failed lately. Each failure that was counted is on record."""
    refused = AuthEvent.objects.filter(
        organisation=user.tenant_id,
        kind=AuthEventKind.ADMIN_LOGIN_REFUSED,
        pk__gte=first_id_at(timezone.now() - _LOOKS_BACK),
        email=user.email,
    )
    places = refused.order_by().values_list("client_address", "credential").distinct()
    return list(
        {
            _of_browser(user.email, browser)
            if browser
            else _at_client(user.email, network_of(address or ""))
            for address, browser in places
        }
    )


_AT_CLIENT = "admin-login"


def _at_client(email: str, network: str) -> Count:
    return Count(windows.ADMIN_LOGIN_FAILURES_AT_CLIENT, (_AT_CLIENT, email, network))


def _of_user(email: str) -> Count:
    return Count(windows.ADMIN_LOGIN_FAILURES_OF_USER, ("admin-login-user", email))


def _of_logins(email: str) -> Count:
    return Count(windows.ADMIN_LOGINS_OF_USER, ("admin-login-right", email))


def _of_browser(email: str, browser: str) -> Count:
    return Count(windows.ADMIN_LOGIN_FAILURES_OF_BROWSER, ("admin-login-browser", email, browser))


def _end(count: Count) -> dt.datetime | None:
    end = full_until(count)
    return None if end is None else dt.datetime.fromtimestamp(end, dt.UTC)
