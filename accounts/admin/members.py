"""Memberships, on the page of their organisation and on that of their user."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.forms import PaginationInlineFormSet
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.admin.reach import administered_organisations
from accounts.admin.tenancy import TenantInline
from accounts.admin.user_form import ROLE_HELP
from accounts.flows.add_member import add_member
from accounts.flows.remove_member import remove_member
from accounts.flows.update_user import update_user
from accounts.models import Membership, User


class MembershipFormSet(PaginationInlineFormSet):
    """Saves through the flows."""

    def save_new(self, form: Any, commit: bool = True) -> Membership:
        membership: Membership = form.instance
        organisation, user = membership.organisation, membership.user
        add_member(organisation, email=user.email, role=membership.role)
        return Membership.objects.get(organisation=organisation, user=user)

    def save_existing(self, form: Any, obj: Membership, commit: bool = True) -> Membership:
        update_user(obj.organisation, obj.user, role=obj.role)
        return obj

    def delete_existing(self, obj: Membership, commit: bool = True) -> None:
        remove_member(obj.organisation, obj.user)


class MemberForm(forms.ModelForm[Membership]):
    """A member by e-mail: who knows the address of a user may add them."""

    email = forms.CharField(
        label="E-mail",
        widget=UnfoldAdminTextInputWidget,
        help_text="Of somebody who is a user already, like ann@example.com.",
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
        if user is None:
            raise ValidationError("There is no user with this e-mail yet. Add the user first.")
        if user.memberships.filter(organisation=self.instance.organisation).exists():
            raise ValidationError("This user is a member already.")
        self.instance.user = user
        return email


class MembersInline(TenantInline):
    model = Membership
    form = MemberForm
    formset = MembershipFormSet
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


class UserMembershipsInline(TenantInline):
    """Of a user's memberships those that the person has a say over."""

    model = Membership
    form = UserMembershipForm
    formset = MembershipFormSet
    fields = ("organisation", "role")
    help_texts = {
        "organisation": "Where the user becomes a member; they keep their other memberships.",
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
