"""The page that asks for the second factor, or the password, in the middle of a login."""

from typing import Any, cast

from django import forms
from django.contrib.admin import site
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.debug import sensitive_post_parameters
from unfold.widgets import UnfoldAdminPasswordWidget

from accounts.admin.step_up import FRESH_FOR, note_proof
from accounts.models import AuditReason, User
from accounts.rate_limits.limiter import CountFullError, is_first
from config.admin.login import (
    TOO_MANY,
    PasswordTry,
    has_own_second_factor,
    is_password_given,
    next_page,
    note_refusal,
)
from config.admin.login_code import CodeForm, device_of_code
from core.admin.too_many_attempts import too_many_attempts


class PasswordForm(forms.Form):
    password = forms.CharField(
        strip=False,
        max_length=4096,
        widget=UnfoldAdminPasswordWidget(
            attrs={"autocomplete": "current-password", "autofocus": ""}
        ),
    )


@sensitive_post_parameters("password", "code")
def step_up(request: HttpRequest) -> HttpResponse:
    """Notes the proof and goes on to the page that asked for it.

    Also for users who have to set up their first second factor, and so are not quite logged in.
    """
    is_enrolling = is_password_given(request) and not has_own_second_factor(request)
    if not (site.has_permission(request) or is_enrolling):
        return redirect("admin:login")
    form_class = CodeForm if has_own_second_factor(request) else PasswordForm
    if request.method != "POST":
        return _page(request, form_class())
    form = form_class(request.POST)
    if not form.is_valid():
        return _page(request, form)
    if isinstance(form, CodeForm):
        return _check_code(request, form)
    return _check_password(request, form)


def _check_code(request: HttpRequest, form: CodeForm) -> HttpResponse:
    device = device_of_code(request, form, _page)
    return device if isinstance(device, HttpResponse) else _go_on(request)


def _check_password(request: HttpRequest, form: forms.Form) -> HttpResponse:
    user = cast("User", request.user)
    attempt = PasswordTry(request, user.email)
    try:
        attempt.claim()
    except CountFullError as full:
        if is_first(full.count.window, *full.count.identifiers):
            note_refusal(request, user.email, AuditReason.LOCKED_OUT)
        return too_many_attempts(request, full, TOO_MANY)
    with attempt.hashing(user):
        is_right = user.check_password(form.cleaned_data["password"])
    if not is_right:
        note_refusal(request, user.email, AuditReason.WRONG_CREDENTIALS)
        form.add_error("password", "This password is wrong.")
        return _page(request, form)
    attempt.succeed()
    return _go_on(request)


def _go_on(request: HttpRequest) -> HttpResponse:
    note_proof(request)
    return redirect(next_page(request))


def _page(request: HttpRequest, form: Any, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {
        **site.each_context(request),
        "title": "Confirm that it is you",
        "form": form,
        "asks_code": isinstance(form, CodeForm),
        "minutes": int(FRESH_FOR.total_seconds() // 60),
        "next": next_page(request),
    }
    response = TemplateResponse(request, "admin/step_up.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
