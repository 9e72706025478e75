"""Open invitations: looked at and withdrawn here. They are made where members are added."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.enums import ActionVariant

from accounts.admin.reach import is_superuser
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.flows.organisations import remove_member
from accounts.models import Invitation, Organisation, User
from core.admin.confirmation import NEXT, Question, ask, is_confirmed, next_address
from core.admin.display import EmptyState, action, display
from core.admin.links import action_of, button, link, list_of, page_of
from core.admin.panels import Panel, panel_of
from core.http.origin import origin_of

_WITHDRAW = Question(
    title="Withdraw invitation",
    consequences="It cannot be accepted any more. You may invite the user again.",
    button="Withdraw",
)
_HEADERS = ("Role", "Invited", "Ends", "Action")


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyTenantModelAdmin):
    """Names the user by the address invited: more is not the organisation's to know."""

    empty_state = EmptyState(
        "An invitation waits here until the user accepts or declines it. Invite a user on the page "
        "of an organisation, under Members.",
        "Organisations",
        "admin:accounts_organisation_changelist",
    )
    list_display = ("email", "organisation", "role", "status", "created_at", "expires_at")
    list_select_related = ("organisation",)
    sortable_by = ("email", "organisation", "role", "created_at", "expires_at")
    search_fields = ("email",)
    search_help_text = "E-mail"
    actions = ("withdraw_selected",)
    actions_detail = ("withdraw",)
    fields = ("email", "organisation", "role", "status", "created_at", "expires_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        invitations: Any = super().get_queryset(request)
        rows: QuerySet[Any] = invitations.open()
        return rows

    def has_withdraw_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        if object_id is None:
            return self.has_view_permission(request)
        return self.get_object(request, object_id) is not None

    @display(description="Status", label={"Invited": "info"})
    def status(self, invitation: Invitation) -> str:
        return "Invited"

    @action(
        description="Withdraw",
        permissions=["withdraw"],
        variant=ActionVariant.DANGER,
        icon="person_remove",
    )
    def withdraw(self, request: HttpRequest, object_id: str) -> HttpResponse:
        invitation = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _WITHDRAW, [invitation])
        self._withdraw(request, [invitation])
        return redirect(next_address(request, list_of(Invitation)))

    @admin.action(description="Withdraw selected invitations", permissions=["withdraw"])
    def withdraw_selected(
        self, request: HttpRequest, queryset: QuerySet[Invitation]
    ) -> HttpResponse | None:
        if not is_confirmed(request):
            return ask(self, request, _WITHDRAW, queryset)
        self._withdraw(request, queryset.select_related("organisation", "user"))
        return None

    def _withdraw(self, request: HttpRequest, invitations: Iterable[Invitation]) -> None:
        for invitation in invitations:
            self.log_deletions(request, [invitation])
            remove_member(invitation.organisation, invitation.user, origin=origin_of(request))
            self.message_user(
                request, f"The invitation of {invitation.email} has ended.", messages.SUCCESS
            )


@panel_of(Organisation)
def invitations_of_organisation(request: HttpRequest, organisation: Organisation) -> Panel:
    invitations = Invitation.objects.of_organisation(organisation)
    return Panel(
        title="Invitations",
        headers=("E-mail", "Status", *_HEADERS),
        rows=[
            (
                link(page_of(invitation), invitation.email),
                "Invited",
                *_cells(invitation, page_of(organisation)),
            )
            for invitation in invitations
        ],
        empty="No open invitation. Add a member above to invite a user.",
    )


@panel_of(User)
def invitations_of_user(request: HttpRequest, user: User) -> Panel | None:
    """For superusers: it tells which organisations invite the user."""
    if not is_superuser(request):
        return None
    invitations = user.invitations.open().select_related("organisation")
    return Panel(
        title="Invitations",
        headers=("Organisation", *_HEADERS),
        rows=[
            (
                link(page_of(invitation.organisation), invitation.organisation),
                *_cells(invitation, page_of(user)),
            )
            for invitation in invitations
        ],
        empty="No organisation invites this user at present.",
    )


def _cells(invitation: Invitation, back_to: str) -> tuple[object, ...]:
    withdraw = action_of(invitation, "withdraw", **{NEXT: back_to})
    return (
        invitation.get_role_display(),
        invitation.created_at,
        invitation.expires_at,
        button(withdraw, "Withdraw", of=f"the invitation of {invitation.email}"),
    )
