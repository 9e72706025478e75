"""The action "Invite to the admin", on an organisation's page, the list of users, and a user."""

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.addresses import MAX_LENGTH, validate_typed_email
from accounts.admin.reach import administered_organisations, has_scope, person
from accounts.flows.invite_administrator import invite_administrator
from accounts.models import Organisation, Role, User
from accounts.scopes import ROLE_HELP, Scope
from core.admin.display import action
from core.admin.links import action_of, list_of, page_of
from core.errors import ForbiddenError, NotFoundError, RateLimitedError
from core.http.origin import origin_of
from core.plain_text import validate_plain_text

_TITLE = "Invite to the admin"
_ROLES = [role for role in Role if role.scopes]


class InvitationForm(forms.Form):
    email = forms.CharField(
        label="E-mail",
        max_length=MAX_LENGTH,
        validators=[validate_typed_email],
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="Of an existing user or a new one, such as ann@example.com.",
    )
    name = forms.CharField(
        required=False,
        max_length=200,
        validators=[validate_plain_text],
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text="For a new user, such as “Ann Lee”. Optional.",
    )
    role = forms.ChoiceField(
        choices=[(role.value, role.label) for role in _ROLES],
        initial=Role.VIEWER,
        widget=UnfoldAdminSelectWidget,
        help_text=ROLE_HELP,
    )


class OrganisationInvitation:
    """Mixin for the model admin of organisations."""

    def has_invite_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        organisation = self.get_object(request, object_id) if object_id else None
        return organisation is not None and organisation.is_active

    @action(description=_TITLE, permissions=["invite"], icon="person_add")
    def invite_administrator(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        organisation: Organisation = self.get_or_404(request, object_id)
        is_sent = request.method == "POST"
        form = InvitationForm(
            request.POST if is_sent else None, initial={"email": request.GET.get("email", "")}
        )
        if is_sent and form.is_valid() and _invite(request, organisation, form):
            return redirect(page_of(organisation))
        return TemplateResponse(
            request,
            "admin/invite_administrator.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": _TITLE,
                "original": organisation,
                "organisation": organisation,
                "organisation_page": page_of(organisation),
                "form": form,
                "hours": int(settings.PASSWORD_LINK_LIFETIME.total_seconds() // 3600),
                "is_mail_configured": settings.IS_EMAIL_CONFIGURED,
            },
        )


def _invite(request: HttpRequest, organisation: Organisation, form: InvitationForm) -> bool:
    """Whether it was done; if not, the form has the reason."""
    email = form.cleaned_data["email"]
    try:
        is_mailed = invite_administrator(
            organisation,
            email=email,
            name=form.cleaned_data["name"],
            role=form.cleaned_data["role"],
            by=person(request),
            origin=origin_of(request),
        )
    except ValidationError as error:
        form.add_error(None, error)
        return False
    except (ForbiddenError, NotFoundError) as refusal:
        form.add_error(None, str(refusal))
        return False
    except RateLimitedError as limited:
        minutes = -(-limited.retry_after_seconds // 60)
        form.add_error(None, f"Too many invitations. Try again in {minutes} min.")
        return False
    role = Role(form.cleaned_data["role"])
    if is_mailed:
        text = f"{email} was invited by e-mail to {organisation}, as {role.label}."
    else:
        text = (
            f"{email} is {role.label} of {organisation} now, and logs in with the password that "
            "they have."
        )
    messages.success(request, text)
    return True


class UserInvitation:
    """Mixin for the model admin of users: leads to the page of the organisation."""

    def has_invite_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        """For the list; for a user's page, whether the user is an active one of this home."""
        if object_id is None:
            return has_scope(request, Scope.WRITE_PEOPLE)
        user = self.get_object(request, object_id)
        if user is None or not user.is_own or not user.is_active or user.home is None:
            return False
        return not (user.is_superuser or user.is_staff)

    @action(description=_TITLE, permissions=["invite"], icon="person_add")
    def invite_administrator(self: Any, request: HttpRequest) -> HttpResponse:
        organisations = list(administered_organisations(request).filter(is_active=True)[:2])
        if len(organisations) == 1:
            return redirect(action_of(organisations[0], "invite_administrator"))
        messages.info(request, f"Open the organisation, and choose “{_TITLE}” on its page.")
        return redirect(list_of(Organisation))

    @action(description=_TITLE, permissions=["invite"], icon="person_add")
    def invite_as_administrator(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        user: User = self.get_or_404(request, object_id)
        page = action_of(cast("Organisation", user.home), "invite_administrator", email=user.email)
        return redirect(page)
