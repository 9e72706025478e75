"""Login to the admin: the password, then the second factor if there is one or must be one."""

from collections.abc import Callable
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp import login as remember_verification
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.admin_login_limits import (
    count_login,
    counts_of_try,
    forgive_here,
    refuse_too_many_logins,
)
from accounts.audit import record_about, record_about_address
from accounts.email_address import canonical_email, validate_typed_email
from accounts.flows.second_factor import has_second_factor, verify_code
from accounts.models import AuditReason, AuthEventKind, User
from accounts.password_hasher import hashing_for
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import CountFullError, claim, is_first
from config.admin.known_browser import known_browser, remember_browser
from config.admin.middleware import start_limits
from core.admin.too_many_attempts import too_many_attempts
from core.errors import RateLimitedError
from core.http.bulkhead import BulkheadFullError
from core.http.client_address import client_address
from core.http.origin import origin_of

_CACHED = "_has_second_factor"
# Users type passwords into the wrong field, so only addresses are recorded.
_NO_ADDRESS = "(no e-mail address)"
_TOO_MANY = (
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
    record_about(AuthEventKind.ADMIN_LOGIN, origin_of(request), user)
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


def note_too_many_codes(request: HttpRequest, email: str) -> None:
    """Record once per window, since a user with the password may try without limit."""
    if is_first(windows.WRONG_CODES_ON_RECORD, "too-many-codes", email):
        note_refusal(request, email, AuditReason.TOO_MANY_CODES)


def _try_password(request: HttpRequest, ask_password: Callable[[], HttpResponse]) -> HttpResponse:
    """Count the attempt before its password is hashed, so that the limit bounds the hashing."""
    email = _typed_email(request)
    client, known = client_address(request), known_browser(request, email)
    browser = None if known is None else known.id
    try:
        refuse_too_many_logins(email)
        claimed = claim(counts_of_try(email, client, browser))
    except CountFullError as full:
        if is_first(full.count.window, *full.count.identifiers):
            _refuse(request, email, AuditReason.LOCKED_OUT)
        is_of_right_ones = full.count.window is windows.ADMIN_LOGINS_OF_USER
        return too_many_attempts(request, full, _TOO_MANY_LOGINS if is_of_right_ones else _TOO_MANY)
    try:
        with hashing_for(None if known is None else known.user):
            response = ask_password()
    except BulkheadFullError:
        claimed.give_back()
        raise
    if not isinstance(response, HttpResponseRedirect):
        form = cast("Any", response).context_data["form"]
        _refuse(
            request,
            email,
            AuditReason.WRONG_CREDENTIALS if form.get_user() is None else AuditReason.NOT_STAFF,
        )
        return response
    claimed.give_back()
    count_login(email)
    forgive_here(email, client, browser)
    start_limits(request.session)
    # Each login needs a new code, even in a session that has one.
    request.session.pop(DEVICE_ID_SESSION_KEY, None)
    if site.has_permission(request):
        note_login(request, response)
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


class CodeForm(forms.Form):
    """A code of the second factor."""

    code = forms.CharField(
        max_length=40,
        widget=UnfoldAdminTextInputWidget(
            attrs={
                "autocomplete": "one-time-code",
                "autocapitalize": "off",
                "spellcheck": "false",
                "autofocus": "",
            }
        ),
    )

    def __init__(self, *args: Any, label: str = "Code", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].label = label

    def refuse(self) -> None:
        self.add_error(
            "code", "This code is wrong or was already used. Wait for the next code and try again."
        )

    def ask_to_wait(self, seconds: int) -> None:
        unit = "second" if seconds == 1 else "seconds"
        self.add_error("code", f"Too many wrong codes. Try again in {seconds} {unit}.")


def code_page(request: HttpRequest) -> HttpResponse:
    if not is_password_given(request) or not has_own_second_factor(request):
        return redirect("admin:login")
    if site.has_permission(request):
        return redirect(next_page(request))
    if request.method != "POST":
        return _page(request, CodeForm())
    form = CodeForm(request.POST)
    return _check(request, form) if form.is_valid() else _page(request, form)


def _check(request: HttpRequest, form: CodeForm) -> HttpResponse:
    user = cast("User", request.user)
    try:
        device = verify_code(user, form.cleaned_data["code"])
    except RateLimitedError as limited:
        note_too_many_codes(request, user.email)
        form.ask_to_wait(limited.retry_after_seconds)
        response = _page(request, form, status=429)
        response["Retry-After"] = str(limited.retry_after_seconds)
        return response
    if device is None:
        note_refusal(request, user.email, AuditReason.WRONG_CODE)
        form.refuse()
        return _page(request, form)
    request.session.cycle_key()
    remember_verification(request, device)
    response = redirect(next_page(request))
    note_login(request, response)
    return response


def _page(request: HttpRequest, form: CodeForm, status: int = 200) -> HttpResponse:
    return TemplateResponse(
        request,
        "admin/login_code.html",
        {
            **site.each_context(request),
            "title": "Second factor",
            "form": form,
            "next": next_page(request),
        },
        status=status,
    )
