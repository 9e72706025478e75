"""Memberships, edited on the page of an organisation or of a user."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.forms import PaginationInlineFormSet
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.admin.reach import administered_organisations
from accounts.admin.tenancy import TenantInline
from accounts.admin.users.form import ROLE_HELP
from accounts.flows.organisations import add_member, remove_member
from accounts.flows.users import update_user
from accounts.models import Invitation, Membership, User
from core.http.origin import Origin, origin_of

_SUPERUSER = "Superusers cannot be members of an organisation."
# Also the answer for a superuser's address, so that it does not reveal superusers.
_NO_USER = "There is no user with this e-mail yet. Add the user first."


class MembershipFormSet(PaginationInlineFormSet):
    """Saves through the flows: a new row invites the user. ``origin`` is the request's."""

    origin: Origin

    def save_new(self, form: Any, commit: bool = True) -> Membership | Invitation:
        row: Membership = form.instance
        email = form.cleaned_data.get("email") or row.user.email
        return add_member(row.organisation, email=email, role=row.role, origin=self.origin)

    def save_existing(self, form: Any, obj: Membership, commit: bool = True) -> Membership:
        update_user(obj.organisation, obj.user, role=obj.role, origin=self.origin)
        return obj

    def delete_existing(self, obj: Membership, commit: bool = True) -> None:
        remove_member(obj.organisation, obj.user, origin=self.origin)


class _MembershipInline(TenantInline):
    formset = MembershipFormSet

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        formset.origin = origin_of(request)
        return formset


def tell_of_invitations(model_admin: Any, request: HttpRequest, formset: Any) -> None:
    for row in formset.new_objects:
        if isinstance(row, Invitation):
            model_admin.message_user(
                request,
                f"{row.email} was invited to {row.organisation} by e-mail and becomes a member "
                "after accepting.",
                messages.INFO,
            )


class MemberForm(forms.ModelForm[Membership]):
    """A member, entered by e-mail."""

    email = forms.CharField(
        label="E-mail",
        widget=UnfoldAdminTextInputWidget,
        help_text=(
            "An existing user's e-mail, such as ann@example.com. The user is invited and becomes "
            "a member after accepting."
        ),
    )

    class Meta:
        model = Membership
        fields = ("role",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.fields["email"].initial = self.instance.user.email
            self.fields["email"].disabled = True

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        if not self.instance._state.adding:
            return email
        user = User.objects.find_by_email(email)
        if user is None or user.is_superuser:
            raise ValidationError(_NO_USER, code="unknown")
        if user.memberships.filter(organisation=self.instance.organisation).exists():
            raise ValidationError("This user is already a member.")
        self.instance.user = user
        return email


class MembersInline(_MembershipInline):
    model = Membership
    form = MemberForm
    fields = ("email", "role")
    help_texts = {"role": ROLE_HELP}
    extra = 0
    hide_title = True
    verbose_name = "member"
    verbose_name_plural = "members"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        rows: QuerySet[Membership] = super().get_queryset(request)
        return rows.select_related("user", "organisation").order_by("user__email")


class UserMembershipForm(forms.ModelForm[Membership]):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.fields["organisation"].disabled = True

    def clean(self) -> dict[str, Any] | None:
        if self.instance._state.adding and self.instance.user.is_superuser:
            raise ValidationError(_SUPERUSER)
        return super().clean()


class UserMembershipsInline(_MembershipInline):
    """A user's memberships in the organisations that the person administers."""

    model = Membership
    form = UserMembershipForm
    fields = ("organisation", "role")
    help_texts = {
        "organisation": "Invites the user to this organisation. Other memberships do not change.",
        "role": ROLE_HELP,
    }
    autocomplete_fields = ("organisation",)
    extra = 0
    hide_title = True

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        rows: QuerySet[Membership] = super().get_queryset(request)
        return rows.select_related("user", "organisation").filter(
            organisation__in=administered_organisations(request)
        )
