"""Memberships, edited on the page of an organisation or of a user."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.forms import PaginationInlineFormSet
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.admin.reach import administered_organisations, maker_of
from accounts.admin.step_up import ask_for_proof, is_proved
from accounts.admin.tenancy import TenantInline
from accounts.flows.minting import Maker
from accounts.flows.organisations import add_member, remove_member
from accounts.flows.users import update_user
from accounts.models import Invitation, Membership, Organisation, User
from accounts.scopes import ROLE_HELP, Scope
from core.admin.display import action
from core.admin.links import action_of, link, link_to, list_of, page_of
from core.admin.panels import Link, Panel, panel_of
from core.http.origin import Origin, origin_of

# The field that every form with memberships has.
_ROLES = "memberships-TOTAL_FORMS"
_CHANGE = "Change roles"
_SHOWN = 50
_SUPERUSER = "Superusers cannot be members of an organisation."
# Also the answer for a superuser's address, so that it does not reveal superusers.
_NO_USER = "There is no user with this e-mail yet. Add the user first."


class MembershipFormSet(PaginationInlineFormSet):
    """Saves through the flows: a new row invites the user.

    ``origin`` is the request's; ``maker(organisation)`` is what its person may give.
    """

    origin: Origin
    maker: Callable[[Organisation], Maker]

    def save_new(self, form: Any, commit: bool = True) -> Membership | Invitation:
        row: Membership = form.instance
        email = form.cleaned_data.get("email") or row.user.email
        return add_member(
            row.organisation,
            email=email,
            role=row.role,
            origin=self.origin,
            maker=self.maker(row.organisation),
        )

    def save_existing(self, form: Any, obj: Membership, commit: bool = True) -> Membership:
        update_user(
            obj.organisation,
            obj.user,
            role=obj.role,
            origin=self.origin,
            maker=self.maker(obj.organisation),
        )
        return obj

    def delete_existing(self, obj: Membership, commit: bool = True) -> None:
        place = obj.organisation
        remove_member(place, obj.user, origin=self.origin, maker=self.maker(place))


class AsksBeforeRoles:
    """Mixin for model admins with memberships on the page of a row.

    Without a fresh proof the page shows the roles as facts, and a button that asks for one. A form
    with roles that arrives later than the proof changes nothing at all.
    """

    def has_stale_proof_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        row = self.get_object(request, object_id) if object_id else None
        return row is not None and not is_proved(request)

    def get_inlines(self: Any, request: HttpRequest, obj: Any) -> Any:
        return self.inlines if obj is not None and is_proved(request) else ()

    @action(description=_CHANGE, permissions=["stale_proof"], icon="shield_person")
    def change_roles(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        """Reached with a fresh proof only; the page then offers the roles."""
        return redirect(page_of(self.get_or_404(request, object_id)))

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method == "POST" and _ROLES in request.POST and not is_proved(request):
            return ask_for_proof(request)
        response: HttpResponse = super().changeform_view(  # type: ignore[misc]
            request, object_id, form_url, extra_context
        )
        return response


class _MembershipInline(TenantInline):
    formset = MembershipFormSet
    view_scope = Scope.READ_PEOPLE
    change_scope = Scope.WRITE_PEOPLE

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        formset.origin = origin_of(request)
        formset.maker = staticmethod(partial(maker_of, request))
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

    def place_of(self, obj: Model | None) -> None:
        """Not at the user's home: the rows are those of the person's own organisations."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Membership]:
        rows: QuerySet[Membership] = super().get_queryset(request)
        return rows.select_related("user", "organisation").filter(
            organisation__in=administered_organisations(request)
        )


@panel_of(Organisation, scope=Scope.READ_PEOPLE, place=-1)
def members_of_organisation(request: HttpRequest, organisation: Organisation) -> Panel | None:
    """The roles as facts, while the page does not offer them."""
    if is_proved(request):
        return None
    members = organisation.memberships.select_related("user").order_by("user__email")
    return Panel(
        title="Members",
        headers=("E-mail", "Role"),
        rows=[
            (link(page_of(member.user), member.user.email), member.get_role_display())
            for member in members[:_SHOWN]
        ],
        empty="No members.",
        links=(
            Link("All users", list_of(User, memberships__organisation__id__exact=organisation.pk)),
            Link(_CHANGE, action_of(organisation, "change_roles"), Scope.WRITE_PEOPLE),
        ),
    )


@panel_of(User, scope=Scope.READ_PEOPLE, place=-1)
def memberships_of_user(request: HttpRequest, user: User) -> Panel | None:
    if is_proved(request):
        return None
    reached = administered_organisations(request)
    memberships = user.memberships.select_related("organisation").filter(organisation__in=reached)
    return Panel(
        title="Memberships",
        headers=("Organisation", "Role"),
        rows=[(link_to(each.organisation), each.get_role_display()) for each in memberships],
        empty="No memberships.",
        links=(Link(_CHANGE, action_of(user, "change_roles"), Scope.WRITE_PEOPLE),),
    )
