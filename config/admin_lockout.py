"""Who guesses passwords at the admin's door has to wait: django-axes, with exact windows.

Every failure is a row of its own. Five within an hour by one user name and address, or twenty by
one user name, and that login is refused unseen until a while after the last of them.
"""

import datetime as dt
from ipaddress import IPv6Address, ip_address
from typing import Any

from axes.handlers.base import AbstractAxesHandler, AxesBaseHandler
from axes.models import AccessFailureLog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils import timezone

from accounts.admin_login_lock import end_of_lock
from accounts.email_address import canonical_email, validate_typed_email
from accounts.models import User
from config.http.client_address import client_address

# Passwords get typed into the wrong field: what is no address is not written down.
NO_ADDRESS = "(no e-mail address)"


def typed_user_name(request: HttpRequest) -> str:
    """The canonical address that somebody logs in with."""
    typed = request.POST.get("username", "")
    try:
        validate_typed_email(typed)
    except ValidationError:
        return NO_ADDRESS
    return canonical_email(typed)


def locked_until(request: HttpRequest) -> dt.datetime | None:
    """When this login may be tried again; ``None``: now."""
    of_user = AccessFailureLog.objects.filter(username=typed_user_name(request))
    at_address = of_user.filter(ip_address=_counted_address(request))
    ends = (
        end_of_lock(at_address, settings.ADMIN_LOGIN_FAILURES_PER_USER_AND_ADDRESS),
        end_of_lock(of_user, settings.ADMIN_LOGIN_FAILURES_PER_USER),
    )
    return max((end for end in ends if end is not None), default=None)


def _counted_address(request: HttpRequest) -> str | None:
    """What counts as one client: an IPv4 address, or the /64 that an IPv6 one is in."""
    text = client_address(request)
    if not text:
        return None
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        return str(IPv6Address(int(address) >> 64 << 64))
    return text


class AdminLockout(AbstractAxesHandler, AxesBaseHandler):
    """Counts failures and answers whether a login is locked out."""

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        return locked_until(request) is not None

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        return AccessFailureLog.objects.filter(username=typed_user_name(request)).count()

    def user_login_failed(
        self, sender: Any, credentials: Any, request: Any = None, **kwargs: Any
    ) -> None:
        # What is refused unseen is no guess and makes nobody wait longer.
        if request is None or request.axes_locked_out:
            return
        AccessFailureLog.objects.filter(
            attempt_time__lt=timezone.now() - settings.ADMIN_LOGIN_FAILURES_WITHIN
        ).delete()
        AccessFailureLog.objects.create(
            username=typed_user_name(request),
            ip_address=_counted_address(request),
            user_agent=request.axes_user_agent,
            http_accept=request.axes_http_accept,
            path_info=request.axes_path_info,
        )
        request.axes_locked_out = self.is_locked(request)

    def user_logged_in(self, sender: Any, request: Any, user: User, **kwargs: Any) -> None:
        """Forgives what this user mistyped here, and nothing that came from elsewhere."""
        AccessFailureLog.objects.filter(
            username=user.email, ip_address=_counted_address(request)
        ).delete()

    def user_logged_out(self, sender: Any, request: Any, user: Any, **kwargs: Any) -> None:
        """Logging out counts for nothing."""

    def reset_attempts(
        self,
        *,
        ip_address: str | None = None,
        username: str | None = None,
        ip_or_username: bool = False,
    ) -> int:
        """For the commands of django-axes: axes_reset, axes_reset_username, axes_reset_ip."""
        failures = AccessFailureLog.objects.all()
        if ip_address:
            failures = failures.filter(ip_address=ip_address)
        if username:
            failures = failures.filter(username=username)
        return failures.delete()[0]
