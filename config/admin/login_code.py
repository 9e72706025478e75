"""The code of the second factor: the page that asks for it in a login, checks and refusals."""

from collections.abc import Callable
from http import HTTPStatus
from typing import cast

from django import forms
from django.contrib.admin import site
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django_otp import login as remember_verification
from django_otp.plugins.otp_totp.models import TOTPDevice
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.flows.second_factor import verify_code
from accounts.models import AuditReason, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import is_first
from config.admin.login import (
    has_own_second_factor,
    is_password_given,
    next_page,
    note_login,
    note_refusal,
)
from core.errors import RateLimitedError


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

    def refuse(self) -> None:
        self.add_error(
            "code", "This code is wrong or was already used. Wait for the next code and try again."
        )

    def ask_to_wait(self, seconds: int) -> None:
        unit = "second" if seconds == 1 else "seconds"
        self.add_error("code", f"Too many wrong codes. Try again in {seconds} {unit}.")


# With the request, the form and a status.
CodePage = Callable[..., HttpResponse]


def device_of_code(
    request: HttpRequest, form: CodeForm, page: CodePage
) -> TOTPDevice | HttpResponse:
    """The app whose code was entered, or the page that says why none is; that is on record."""
    user = cast("User", request.user)
    try:
        device = verify_code(user, form.cleaned_data["code"])
    except RateLimitedError as limited:
        return refuse_for_now(request, form, page, limited)
    if device is not None:
        return device
    note_refusal(request, user.email, AuditReason.WRONG_CODE)
    form.refuse()
    return page(request, form)


def refuse_for_now(
    request: HttpRequest, form: CodeForm, page: CodePage, limited: RateLimitedError
) -> HttpResponse:
    """The page after too many wrong codes, with status 429."""
    note_too_many_codes(request, cast("User", request.user).email)
    form.ask_to_wait(limited.retry_after_seconds)
    response = page(request, form, status=HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(limited.retry_after_seconds)
    return response


def note_too_many_codes(request: HttpRequest, email: str) -> None:
    """Record once per window, since a user with the password may try without limit."""
    if is_first(windows.WRONG_CODES_ON_RECORD, "too-many-codes", email):
        note_refusal(request, email, AuditReason.TOO_MANY_CODES)


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
    device = device_of_code(request, form, _page)
    if isinstance(device, HttpResponse):
        return device
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
