"""The second page of a login: the code."""

from typing import cast

from django.contrib.admin import site
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django_otp import login as remember_verification

from accounts.flows.second_factor import verify_code
from accounts.models import User
from config.admin.admin_code_form import CodeForm
from config.admin.admin_entry import (
    has_own_second_factor,
    is_password_given,
    next_page,
    note_login,
    note_refusal,
    note_too_many_codes,
)
from core.errors import RateLimitedError


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
        note_refusal(request, user.email, "wrong-code")
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
