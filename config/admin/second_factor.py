"""The page on which users set up, renew and turn off their own second factor."""

from base64 import b32encode
from typing import Any, cast

import segno
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import ModelAdmin, site
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_GET
from django_otp import login as remember_verification
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.admin.step_up import ask_for_proof, is_proved, note_proof, proved
from accounts.audit import record
from accounts.flows.second_factor import (
    begin_enrolment,
    confirm_enrolment,
    count_recovery_codes,
    find_pending_enrolment,
    find_recovery_codes_id,
    remove_second_factor,
    replace_recovery_codes,
    verify_code,
)
from accounts.models import AuditReason, AuthEventKind, User
from config.admin.login import (
    has_own_second_factor,
    is_password_given,
    next_page,
    note_login,
    note_refusal,
)
from config.admin.login_code import CodeForm, refuse_for_now
from core.admin import shown_once
from core.errors import RateLimitedError
from core.http.origin import origin_of


def second_factor(request: HttpRequest) -> HttpResponse:
    """Serve logged-in users, and users who must set up a second factor first."""
    if not is_password_given(request) or (
        has_own_second_factor(request) and not site.has_permission(request)
    ):
        return redirect("admin:login")
    # Each change of an existing one asks for a code itself.
    if not has_own_second_factor(request) and not is_proved(request):
        return ask_for_proof(request)
    if request.method != "POST":
        return _page(request, CodeForm())
    if "begin" in request.POST and not has_own_second_factor(request):
        begin_enrolment(cast("User", request.user))
        return redirect(request.get_full_path())
    form = CodeForm(request.POST)
    return _check(request, form) if form.is_valid() else _page(request, form)


def _check(request: HttpRequest, form: CodeForm) -> HttpResponse:
    try:
        done = _act(request, form.cleaned_data["code"])
    except RateLimitedError as limited:
        return refuse_for_now(request, form, _page, limited)
    if done is None:
        note_refusal(request, cast("User", request.user).email, AuditReason.WRONG_CODE)
        form.refuse()
        return _page(request, form)
    return done


def _act(request: HttpRequest, code: str) -> HttpResponse | None:
    """Do what the code was entered for; return None if the code is wrong."""
    user = cast("User", request.user)
    if not has_own_second_factor(request):
        return _confirm(request, user, code)
    if verify_code(user, code) is None:
        return None
    note_proof(request)
    if "turn_off" in request.POST:
        remove_second_factor(user)
        _write_down(
            request, user, "Turned off the second factor.", AuditReason.SECOND_FACTOR_TURNED_OFF
        )
        messages.success(request, "The second factor is off.")
        return redirect("admin:second_factor")
    codes = replace_recovery_codes(user)
    _write_down(request, user, "Made new recovery codes.", AuditReason.NEW_RECOVERY_CODES)
    return _show_recovery_codes(request, codes)


def _confirm(request: HttpRequest, user: User, code: str) -> HttpResponse | None:
    was_outside = not site.has_permission(request)
    confirmed = confirm_enrolment(user, code)
    if confirmed is None:
        return None
    device, codes = confirmed
    request.session.cycle_key()
    remember_verification(request, device)
    note_proof(request)
    _write_down(request, user, "Turned on the second factor.", AuditReason.SECOND_FACTOR_TURNED_ON)
    response = _show_recovery_codes(request, codes)
    if was_outside:
        note_login(request, response)
    return response


def _write_down(request: HttpRequest, user: User, what: str, reason: AuditReason) -> None:
    """Record the change in the user's history and in the audit log."""
    user_admin: ModelAdmin[Any] = site.get_model_admin(User)
    user_admin.log_change(request, user, what)
    record(AuthEventKind.SECOND_FACTOR_CHANGED, origin_of(request), user=user, reason=reason)


def _show_recovery_codes(request: HttpRequest, codes: list[str]) -> HttpResponse:
    shown_once.keep(request, _codes_name(request), "\n".join(codes))
    query = urlencode({REDIRECT_FIELD_NAME: next_page(request)})
    return redirect(f"{reverse('admin:recovery_codes')}?{query}")


@require_GET
@proved
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """Show new recovery codes, once, to the login that created them."""
    response = TemplateResponse(
        request,
        "admin/recovery_codes.html",
        {
            **site.each_context(request),
            "title": "Recovery codes",
            "codes": shown_once.take(request, _codes_name(request)),
            "kept_minutes": int(shown_once.KEPT_FOR.total_seconds() // 60),
            "done": next_page(request),
        },
    )
    response["Cache-Control"] = "no-store"
    return response


def _codes_name(request: HttpRequest) -> str:
    return f"recovery codes {find_recovery_codes_id(cast('User', request.user))}"


def _page(request: HttpRequest, form: CodeForm, status: int = 200) -> HttpResponse:
    user = cast("User", request.user)
    is_on = has_own_second_factor(request)
    pending = None if is_on else find_pending_enrolment(user)
    return TemplateResponse(
        request,
        "admin/second_factor.html",
        {
            **site.each_context(request),
            "title": "Second factor",
            "form": form,
            "is_on": is_on,
            "is_required": settings.IS_SECOND_FACTOR_REQUIRED,
            "recovery_codes": count_recovery_codes(user) if is_on else 0,
            "secret": "" if pending is None else _secret_in_groups(pending),
            "qr_code": "" if pending is None else _qr_code(pending),
            "next": next_page(request),
        },
        status=status,
    )


def _secret_in_groups(device: TOTPDevice) -> str:
    text = b32encode(device.bin_key).decode()
    return " ".join(text[start : start + 4] for start in range(0, len(text), 4))


def _qr_code(device: TOTPDevice) -> str:
    """Draw on white, in dark mode too: not every camera reads inverted codes."""
    code = segno.make(device.config_url, error="m", micro=False)
    # Without a size it has a viewBox, and scales with the page instead of being cut off.
    image = code.svg_inline(omitsize=True, border=4, dark="#000", light="#fff")
    return mark_safe(image)  # noqa: S308
