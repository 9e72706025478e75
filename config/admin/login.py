"""Login to the admin: the password, and whether the second factor must follow."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django_otp import DEVICE_ID_SESSION_KEY

from accounts.addresses import canonical_email, validate_typed_email
from accounts.admin.step_up import forget_proof, note_proof
from accounts.admin_login_limits import (
    count_login,
    counts_of_try,
    forgive_here,
    refuse_too_many_logins,
)
from accounts.audit import record, record_about_address
from accounts.flows.second_factor import has_second_factor
from accounts.models import AuditReason, AuthEventKind, User
from accounts.password_hasher import hashing_for
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import CountFullError, claim, is_first
from config.admin.known_browser import known_browser, remember_browser
from config.admin.middleware import start_limits
from core.admin.too_many_attempts import too_many_attempts
from core.http.bulkhead import BulkheadFullError
from core.http.origin import client_address, origin_of

_CACHED = "_has_second_factor"
# Users type passwords into the wrong field, so only addresses are recorded.
_NO_ADDRESS = "(no e-mail address)"
TOO_MANY = (
    "There were too many wrong passwords for this login, or from your network. "
    "This login is temporarily locked, for correct passwords too."
)
_TOO_MANY_LOGINS = "You have logged in too often. Your open logins stay valid."


def is_password_given(request: HttpRequest) -> bool:
    user = request.user
    return isinstance(user, User) and user.is_active and user.is_staff


def has_own_second_factor(request: HttpRequest) -> bool:
    """Whether the user has a second factor; read once per request."""
    cached: bool | None = getattr(request, _CACHED, None)
    if cached is None:
        cached = has_second_factor(cast("User", request.user))
        setattr(request, _CACHED, cached)
    return cached


def is_second_factor_met(request: HttpRequest) -> bool:
    """Whether the user has entered a code or needs none. Valid only after the password."""
    if getattr(request.user, "otp_device", None) is not None:
        return True
    return not settings.IS_SECOND_FACTOR_REQUIRED and not has_own_second_factor(request)


def log_in(request: HttpRequest, ask_password: Callable[[], HttpResponse]) -> HttpResponse:
    """Ask for the password, or for the second factor after it, and record the result."""
    if request.method == "GET" and is_password_given(request) and not site.has_permission(request):
        page = "login_code" if has_own_second_factor(request) else "second_factor"
        query = urlencode({REDIRECT_FIELD_NAME: next_page(request)})
        return redirect(f"{reverse(f'admin:{page}')}?{query}")
    if not (request.POST.get("username") and request.POST.get("password")):
        return ask_password()
    return _try_password(request, ask_password)


def next_page(request: HttpRequest) -> str:
    """Return the page requested before the login, if it is on this site."""
    wanted = request.POST.get(REDIRECT_FIELD_NAME) or request.GET.get(REDIRECT_FIELD_NAME, "")
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours else reverse("admin:index")


def note_login(request: HttpRequest, response: HttpResponse) -> None:
    """Record a complete login, and remember the browser."""
    user = cast("User", request.user)
    note_proof(request)
    record(AuthEventKind.ADMIN_LOGIN, origin_of(request), user=user)
    remember_browser(request, response, user)


def note_refusal(request: HttpRequest, email: str, reason: AuditReason) -> None:
    known = known_browser(request, email)
    record_about_address(
        AuthEventKind.ADMIN_LOGIN_REFUSED,
        origin_of(request),
        email,
        reason,
        credential="" if known is None else known.id,
    )


class PasswordTry:
    """One attempt at a user's password, counted like all others wherever it is typed."""

    def __init__(self, request: HttpRequest, email: str) -> None:
        self._email = email
        self._client, self.known = client_address(request), known_browser(request, email)
        self._browser = None if self.known is None else self.known.id

    def claim(self) -> None:
        """Count it before the password is hashed, so that the limit bounds the hashing.

        Raises ``CountFullError``.
        """
        refuse_too_many_logins(self._email)
        self._claimed = claim(counts_of_try(self._email, self._client, self._browser))

    @contextmanager
    def hashing(self, user: User | None) -> Iterator[None]:
        """A place to hash; an attempt that gets none does not count."""
        try:
            with hashing_for(user):
                yield
        except BulkheadFullError:
            self._claimed.give_back()
            raise

    def succeed(self) -> None:
        """Take the attempt back from the wrong ones, and forgive these."""
        self._claimed.give_back()
        count_login(self._email)
        forgive_here(self._email, self._client, self._browser)


def _try_password(request: HttpRequest, ask_password: Callable[[], HttpResponse]) -> HttpResponse:
    email = _typed_email(request)
    attempt = PasswordTry(request, email)
    try:
        attempt.claim()
    except CountFullError as full:
        if is_first(full.count.window, *full.count.identifiers):
            _refuse(request, email, AuditReason.LOCKED_OUT)
        is_of_right_ones = full.count.window is windows.ADMIN_LOGINS_OF_USER
        return too_many_attempts(request, full, _TOO_MANY_LOGINS if is_of_right_ones else TOO_MANY)
    with attempt.hashing(None if attempt.known is None else attempt.known.user):
        response = ask_password()
    if not isinstance(response, HttpResponseRedirect):
        form = cast("Any", response).context_data["form"]
        _refuse(
            request,
            email,
            AuditReason.WRONG_CREDENTIALS if form.get_user() is None else AuditReason.NOT_STAFF,
        )
        return response
    attempt.succeed()
    start_limits(request.session)
    # Each login needs a new code, even in a session that has one.
    request.session.pop(DEVICE_ID_SESSION_KEY, None)
    forget_proof(request)
    if site.has_permission(request):
        note_login(request, response)
    elif not has_own_second_factor(request):
        # The password is all that the user has; the next page sets up a second factor.
        note_proof(request)
    return response


def _typed_email(request: HttpRequest) -> str:
    """Return the typed address in canonical form."""
    address = canonical_email(request.POST["username"])
    try:
        validate_typed_email(address)
    except ValidationError:
        return _NO_ADDRESS
    return address


def _refuse(request: HttpRequest, email: str, reason: AuditReason) -> None:
    note_refusal(request, "" if email == _NO_ADDRESS else email, reason)
