"""Limits of password attempts at the admin's login, and the logins that they lock now.

An attempt is counted before its password is hashed, in three windows: of the client, of the user
at this client, and of the user from anywhere. A browser in which the user has logged in before has
a window of its own instead, so that a stranger cannot lock the owner out.
"""

import datetime as dt
from contextlib import suppress
from typing import NamedTuple

from django.utils import timezone

from accounts.models import AuthEvent, AuthEventKind, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import Count, forget, full_until, hit, refuse_if_full
from core.database.ids import first_id_at
from core.errors import RateLimitedError
from core.http.origin import network_of

# The longest of a user's windows.
_LONGEST_WINDOW = dt.timedelta(hours=1)
_AT_CLIENT = "admin-login"


class LockedPlace(NamedTuple):
    """``where`` is a client's address or network; empty for a known browser."""

    where: str
    until: dt.datetime


def counts_of_try(email: str, client_address: str, browser: str | None) -> tuple[Count, ...]:
    """The counts of one attempt, the client's first; ``browser`` is the id of a known one."""
    if browser is not None:
        return (_of_browser(email, browser),)
    network = network_of(client_address)
    return (
        Count(windows.ADMIN_LOGIN_FAILURES_OF_CLIENT, ("admin-login-client", network)),
        _at_client(email, network),
        _of_user(email),
    )


def count_login(email: str) -> None:
    """Counts a right password."""
    count = _of_logins(email)
    with suppress(RateLimitedError):
        hit([count.window], *count.identifiers)


def refuse_too_many_logins(email: str) -> None:
    """Raises ``CountFullError`` after too many right passwords.

    Only right ones count here, so a stranger cannot lock the user out.
    """
    refuse_if_full(_of_logins(email))


def forgive_here(email: str, client_address: str, browser: str | None) -> None:
    """Resets, after a success, the failures of this browser or client only."""
    if browser is not None:
        forget(_of_browser(email, browser))
    else:
        forget(_at_client(email, network_of(client_address)))


def forgive_everywhere(user: User) -> None:
    """Resets all counts of the user."""
    for count in (_of_user(user.email), _of_logins(user.email), *_counts_of_places(user)):
        forget(count)


def locked_everywhere_until(user: User) -> dt.datetime | None:
    """Until when the user can log in only from known browsers; ``None`` if not locked."""
    return full_until(_of_user(user.email))


def locked_places(user: User) -> list[LockedPlace]:
    """Clients and known browsers from which the user cannot log in now."""
    ends = {count.identifiers: full_until(count) for count in _counts_of_places(user)}
    return [
        LockedPlace(identifiers[2] if identifiers[0] == _AT_CLIENT else "", end)
        for identifiers, end in ends.items()
        if end is not None
    ]


def _counts_of_places(user: User) -> list[Count]:
    """Counts of the clients and browsers with recent failures, found in the audit log."""
    refused = AuthEvent.objects.filter(
        organisation=user.tenant_id,
        kind=AuthEventKind.ADMIN_LOGIN_REFUSED,
        pk__gte=first_id_at(timezone.now() - _LONGEST_WINDOW),
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


def _at_client(email: str, network: str) -> Count:
    return Count(windows.ADMIN_LOGIN_FAILURES_AT_CLIENT, (_AT_CLIENT, email, network))


def _of_user(email: str) -> Count:
    return Count(windows.ADMIN_LOGIN_FAILURES_OF_USER, ("admin-login-user", email))


def _of_logins(email: str) -> Count:
    return Count(windows.ADMIN_LOGINS_OF_USER, ("admin-login-right", email))


def _of_browser(email: str, browser: str) -> Count:
    return Count(windows.ADMIN_LOGIN_FAILURES_OF_BROWSER, ("admin-login-browser", email, browser))
