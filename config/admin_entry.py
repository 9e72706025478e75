"""The way in: the password, then the second factor of who has one or must have one."""

from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django_otp import DEVICE_ID_SESSION_KEY

from accounts.audit import record_about, record_about_address
from accounts.models import AuthEventKind, User
from accounts.second_factor.enrolment import has_second_factor
from config.admin_lockout import NO_ADDRESS, typed_user_name
from config.admin_session_limits import restart
from config.http.origin import origin_of

_CACHED = "_has_second_factor"


def is_password_given(request: HttpRequest) -> bool:
    user = request.user
    return isinstance(user, User) and user.is_active and user.is_staff


def has_own_second_factor(request: HttpRequest) -> bool:
    """Whether the person has one, read once a request."""
    cached: bool | None = getattr(request, _CACHED, None)
    if cached is None:
        cached = has_second_factor(cast("User", request.user))
        setattr(request, _CACHED, cached)
    return cached


def is_second_factor_met(request: HttpRequest) -> bool:
    """Whether the person has given a code, or needs none. Only after the password."""
    if getattr(request.user, "otp_device", None) is not None:
        return True
    return not settings.IS_SECOND_FACTOR_REQUIRED and not has_own_second_factor(request)


def log_in(request: HttpRequest, ask_password: Callable[[], HttpResponse]) -> HttpResponse:
    """Asks for the password, or for what is missing after it; writes down how it went."""
    if request.method == "GET" and is_password_given(request) and not site.has_permission(request):
        page = "login_code" if has_own_second_factor(request) else "second_factor"
        query = urlencode({REDIRECT_FIELD_NAME: next_page(request)})
        return redirect(f"{reverse(f'admin:{page}')}?{query}")
    response = ask_password()
    if request.method == "POST":
        _after_password(request, response)
    return response


def next_page(request: HttpRequest) -> str:
    """Where the person wanted to go, if that is on this site."""
    wanted = request.POST.get(REDIRECT_FIELD_NAME) or request.GET.get(REDIRECT_FIELD_NAME, "")
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours else reverse("admin:index")


def note_login(request: HttpRequest) -> None:
    record_about(AuthEventKind.ADMIN_LOGIN, origin_of(request), cast("User", request.user))


def note_refusal(request: HttpRequest, email: str, reason: str) -> None:
    record_about_address(AuthEventKind.ADMIN_LOGIN_REFUSED, origin_of(request), email, reason)


def _after_password(request: HttpRequest, response: HttpResponse) -> None:
    if isinstance(response, HttpResponseRedirect):
        restart(request.session)
        # Every password asks for a code of its own, in a session that had one too.
        request.session.pop(DEVICE_ID_SESSION_KEY, None)
        if site.has_permission(request):
            note_login(request)
        return
    form = cast("Any", response).context_data["form"]
    if not (form.data.get("username") and form.data.get("password")):
        return
    email = typed_user_name(request)
    if getattr(request, "axes_locked_out", False):
        reason = "locked-out"
    else:
        reason = "wrong-credentials" if form.get_user() is None else "not-staff"
    note_refusal(request, "" if email == NO_ADDRESS else email, reason)
