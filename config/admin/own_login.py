"""The page on which users with a login to the admin change their own e-mail and phone."""

from contextlib import nullcontext
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin, site
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from accounts.addresses import MAX_LENGTH, validate_typed_email
from accounts.admin.reach import organisation_ids
from accounts.flows.second_factor import verify_code
from accounts.flows.users import change_own_login
from accounts.models import AuditReason, Organisation, User
from accounts.password_hasher import hashing_for
from accounts.rate_limits import windows
from accounts.rate_limits.addresses import counted_answer
from accounts.rate_limits.limiter import hit
from config.admin.known_browser import remember_browser
from config.admin.login import has_own_second_factor, note_refusal
from config.admin.login_code import note_too_many_codes
from core.admin.too_many_attempts import too_many_attempts
from core.errors import RateLimitedError
from core.http.origin import origin_of

TOO_MANY = "There were too many attempts to change this e-mail and phone, or too many changes."


class OwnLoginForm(forms.Form):
    email = forms.CharField(
        label="E-mail",
        max_length=MAX_LENGTH,
        validators=[validate_typed_email],
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "email", "spellcheck": "false"}),
        help_text="Used to log in. The former address is told of a change.",
    )
    phone = forms.CharField(
        required=False,
        max_length=40,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "tel"}),
        help_text="With country code, such as +491701234567. Receives PIN codes by SMS.",
    )
    password = forms.CharField(
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "current-password"}),
        help_text="Your present password.",
    )
    code = forms.CharField(
        max_length=40,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "one-time-code"}),
        help_text="From your authenticator app, or a recovery code.",
    )

    def __init__(self, *args: Any, asks_code: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not asks_code:
            del self.fields["code"]


def own_login(request: HttpRequest) -> HttpResponse:
    """Change the user's own e-mail and phone, with the password and the second factor.

    Attempts are limited, so that neither can be guessed at an unattended login.
    """
    user = cast("User", request.user)
    form = OwnLoginForm(
        request.POST if request.method == "POST" else None,
        initial={"email": user.delivery_email, "phone": user.phone},
        asks_code=has_own_second_factor(request),
    )
    try:
        if form.is_valid() and _change(request, user, form):
            response = redirect("admin:own_login")
            # This browser's cookie names the former address.
            remember_browser(request, response, cast("User", request.user))
            return response
    except RateLimitedError as limited:
        return too_many_attempts(request, limited, TOO_MANY)
    return TemplateResponse(
        request,
        "admin/own_login.html",
        {**site.each_context(request), "title": "Change e-mail and phone", "form": form},
    )


def _change(request: HttpRequest, user: User, form: OwnLoginForm) -> bool:
    """Whether it was changed; if not, the form has the reason."""
    hit([windows.PASSWORD_CHANGES_OF_PERSON], "password-change", str(user.pk))
    if not _is_proven(request, user, form):
        return False
    email, phone = form.cleaned_data["email"], form.cleaned_data["phone"]
    origin = origin_of(request)
    organisation = (
        None
        if user.is_superuser
        else Organisation.objects.filter(pk__in=organisation_ids(request)).first()
    )
    answer = nullcontext() if organisation is None else counted_answer(organisation, origin)
    try:
        with answer:
            request.user = change_own_login(user, email=email, phone=phone, origin=origin)
    except ValidationError as error:
        form.add_error(None, error)
        return False
    user_admin: ModelAdmin[Any] = site.get_model_admin(User)
    user_admin.log_change(request, user, "Changed their own e-mail and phone.")
    messages.success(request, "Your e-mail and phone were saved.")
    return True


def _is_proven(request: HttpRequest, user: User, form: OwnLoginForm) -> bool:
    """Whether the password is right, and the code, which is used up only then."""
    with hashing_for(user):
        is_right = user.check_password(form.cleaned_data["password"])
    if not is_right:
        form.add_error("password", "This password is wrong.")
        note_refusal(request, user.email, AuditReason.WRONG_CREDENTIALS)
        return False
    if "code" not in form.fields:
        return True
    try:
        device = verify_code(user, form.cleaned_data["code"])
    except RateLimitedError:
        note_too_many_codes(request, user.email)
        raise
    if device is None:
        form.add_error("code", "This code is wrong or was already used.")
        note_refusal(request, user.email, AuditReason.WRONG_CODE)
        return False
    return True
