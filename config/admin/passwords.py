"""The pages of passwords: changing one's own, asking for a link by e-mail, and opening it.

A link logs nobody in. It leaves the URL for the session at once, so that it does not stay
in the browser's history or reach another page as a referrer.
"""

from functools import partial
from http import HTTPStatus
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import site
from django.contrib.auth import logout
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from unfold.forms import AdminOwnPasswordChangeForm
from unfold.widgets import INPUT_CLASSES, UnfoldAdminTextInputWidget

from accounts.addresses import MAX_LENGTH, validate_typed_email
from accounts.admin_login_limits import forgive_here
from accounts.flows.password_links import read_link, request_password_link, set_password_by_link
from accounts.flows.users import save_password
from accounts.models import User
from accounts.password_hasher import hashing_for
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from config.admin.known_browser import remember_browser
from core.admin.too_many_attempts import too_many_attempts
from core.errors import NotFoundError, RateLimitedError
from core.http.origin import Origin, client_address, origin_of

TOO_MANY = "There were too many attempts to change this password."
_LINK = "link"
_IN_SESSION = "password_link"
_TOO_MANY = "There were too many requests for a new password for this address or from your network."


class OwnPasswordForm(AdminOwnPasswordChangeForm):
    """Saves the password alone.

    Django saves all of the user as read before both hashes were computed, which would undo a
    deactivation or a removed permission from that time.
    """

    def __init__(self, *args: Any, origin: Origin, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._origin = origin

    def set_password_and_save(self, user: Any, *arguments: Any, **options: Any) -> Any:
        super().set_password_and_save(user, *arguments, **{**options, "commit": False})
        save_password(user, origin=self._origin)
        return user


def change_password(request: HttpRequest, context: dict[str, Any]) -> HttpResponseBase:
    """Change the password, which ends the user's other logins to the admin.

    Attempts are limited, so that the old password cannot be guessed at an unattended login.
    """
    user = cast("User", request.user)
    if request.method == "POST":
        try:
            hit([windows.PASSWORD_CHANGES_OF_PERSON], "password-change", str(user.pk))
        except RateLimitedError as limited:
            return too_many_attempts(request, limited, TOO_MANY)
    view = PasswordChangeView.as_view(
        form_class=partial(OwnPasswordForm, origin=origin_of(request)),
        success_url=reverse("admin:password_change_done"),
        extra_context=context,
    )
    with hashing_for(user):
        response = view(request)
    if isinstance(response, HttpResponseRedirect):
        # This browser's cookie was bound to the old password.
        remember_browser(request, cast("HttpResponse", response), cast("User", request.user))
    return response


class AddressForm(forms.Form):
    email = forms.CharField(
        label="E-mail",
        max_length=MAX_LENGTH,
        validators=[validate_typed_email],
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "username", "autocapitalize": "off", "spellcheck": "false"}
        ),
    )


class NewPasswordForm(SetPasswordForm):
    """Two fields; ``hashed`` is the password as the flow stores it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password2"].label = "New password again"
        self.fields["new_password2"].help_text = ""
        for field in self.fields.values():
            field.widget.attrs["class"] = " ".join(INPUT_CLASSES)

    def hashed(self) -> str:
        user: User = self.save(commit=False)
        return user.password


def forgot_password(request: HttpRequest) -> HttpResponse:
    """Ask for an address. The answer and its cost do not depend on whether it has an account."""
    if not settings.IS_EMAIL_CONFIGURED:
        return _page(request, "forgot_password", {"is_mail_configured": False})
    form = AddressForm(request.POST if request.method == "POST" else None)
    is_requested = form.is_valid()
    if is_requested:
        try:
            request_password_link(form.cleaned_data["email"], origin_of(request))
        except RateLimitedError as limited:
            return too_many_attempts(request, limited, _TOO_MANY)
    context = {"form": form, "is_requested": is_requested, "is_mail_configured": True}
    return _page(request, "forgot_password", context)


@sensitive_post_parameters()
def password_link(request: HttpRequest) -> HttpResponse:
    """Take the link from the URL, then ask for the new password."""
    if _LINK in request.GET:
        return _take(request, request.GET[_LINK])
    link = request.session.get(_IN_SESSION, "")
    subject = read_link(link)
    if subject is None:
        return _not_valid(request)
    form = NewPasswordForm(subject.user, request.POST if request.method == "POST" else None)
    if not form.is_valid():
        context = {"form": form, "whom": subject.user, "organisation": subject.organisation}
        return _page(request, "set_password", context)
    try:
        with hashing_for(subject.user):
            hashed = form.hashed()
        user = set_password_by_link(link, hashed, origin=origin_of(request))
    except NotFoundError:
        return _not_valid(request)
    # Guesses of the old password do not lock the new one out here.
    forgive_here(user.email, client_address(request), browser=None)
    # Also ends another user's login in this browser, to which the login page would lead.
    logout(request)
    messages.success(request, "Your new password is set. Log in with it.")
    return redirect("admin:login")


def _take(request: HttpRequest, link: str) -> HttpResponse:
    """Store a valid link only, so that strangers cannot fill the table of sessions."""
    if read_link(link) is None:
        response = _not_valid(request)
    else:
        request.session[_IN_SESSION] = link
        response = redirect("admin:password_link")
    response["Referrer-Policy"] = "no-referrer"
    return response


def _not_valid(request: HttpRequest) -> HttpResponse:
    """Give every reason the same page: only the owner of the mailbox may learn more."""
    request.session.pop(_IN_SESSION, None)
    return _page(request, "password_link_not_valid", {}, HTTPStatus.GONE)


def _page(
    request: HttpRequest, name: str, context: dict[str, Any], status: int = HTTPStatus.OK
) -> HttpResponse:
    titles = {
        "forgot_password": "Forgot your password?",
        "set_password": "Set your password",
        "password_link_not_valid": "This link is no longer valid",
    }
    everything = {**site.each_context(request), "title": titles[name], **context}
    return TemplateResponse(request, f"admin/{name}.html", everything, status=status)
