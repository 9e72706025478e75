"""The pages for users without a (known) password: asking for a link by e-mail, and opening it.

Neither logs anybody in. The link leaves the URL for the session at once, so that it does not stay
in the browser's history or reach another page as a referrer.
"""

from http import HTTPStatus
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import site
from django.contrib.auth import logout
from django.contrib.auth.forms import SetPasswordForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.debug import sensitive_post_parameters
from unfold.widgets import INPUT_CLASSES, UnfoldAdminTextInputWidget

from accounts.admin_login_limits import forgive_here
from accounts.email_address import MAX_LENGTH, validate_typed_email
from accounts.flows.request_password_link import request_password_link
from accounts.flows.set_password_by_link import set_password_by_link
from accounts.models import User
from accounts.password_hasher import hashing_for
from accounts.password_links import read_link
from core.admin.too_many_attempts import too_many_attempts
from core.errors import NotFoundError, RateLimitedError
from core.http.client_address import client_address
from core.http.origin import origin_of

_LINK = "link"
_IN_SESSION = "password_link"
_TOO_MANY = "There were too many requests for a new password for this address or from your network."


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
