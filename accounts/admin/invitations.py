"""Open invitations: listed and withdrawn here, made where members are added."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.enums import ActionVariant

from accounts.admin.reach import is_superuser, maker_of
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.flows.organisations import remove_member
from accounts.models import Invitation, Organisation, User
from accounts.scopes import Scope
from core.admin.confirmation import NEXT, EndingMixin, Question
from core.admin.display import EmptyState, action, display
from core.admin.links import action_of, button, link, page_of
from core.admin.panels import Panel, panel_of
from core.http.origin import origin_of

_HEADERS = ("Role", "Invited", "Expires", "Action")


@admin.register(Invitation)
class InvitationAdmin(EndingMixin, ReadOnlyTenantModelAdmin):
    """Shows only the invited address: the inviting organisation may know no more of the user."""

    empty_state = EmptyState(
        "Invitations are listed here until the user accepts or declines. To invite a user, open "
        "an organisation and add them under Members.",
        "Organisations",
        "admin:accounts_organisation_changelist",
        title="No open invitations",
    )
    view_scope = Scope.READ_PEOPLE
    change_scope = Scope.WRITE_PEOPLE
    page_scopes = {"withdraw": Scope.WRITE_PEOPLE}
    action_scopes = {"withdraw_selected": Scope.WRITE_PEOPLE}
    list_display = ("email", "organisation", "role", "status", "created_at", "expires_at")
    list_select_related = ("organisation",)
    sortable_by = ("email", "organisation", "role", "created_at", "expires_at")
    search_fields = ("email",)
    search_help_text = "E-mail"
    actions = ("withdraw_selected",)
    actions_detail = ("withdraw",)
    end_question = Question(
        title="Withdraw invitation",
        consequences="It can no longer be accepted. You can invite the user again.",
        button="Withdraw",
    )
    ended_word = "withdrawn"
    ending_deletes = True
    fields = ("email", "organisation", "role", "status", "created_at", "expires_at")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        invitations: Any = super().get_queryset(request)
        rows: QuerySet[Any] = invitations.open()
        return rows

    @display(description="Status", label={"Invited": "info"})
    def status(self, invitation: Invitation) -> str:
        return "Invited"

    @action(
        description="Withdraw",
        permissions=["end"],
        variant=ActionVariant.DANGER,
        icon="person_remove",
    )
    def withdraw(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.ask_and_end_one(request, object_id)

    @admin.action(description="Withdraw selected invitations", permissions=["end"])
    def withdraw_selected(
        self, request: HttpRequest, queryset: QuerySet[Invitation]
    ) -> HttpResponse:
        return self.ask_and_end_selected(request, queryset.select_related("organisation", "user"))

    def end_rows(self, request: HttpRequest, rows: Iterable[Invitation]) -> list[Invitation]:
        origin = origin_of(request)
        return [
            row
            for row in rows
            if remove_member(
                row.organisation,
                row.user,
                origin=origin,
                maker=maker_of(request, row.organisation),
            )
        ]

    def ended_name(self, row: Invitation) -> str:
        return f"The invitation of {row.email}"


@panel_of(Organisation, scope=Scope.READ_PEOPLE)
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
        empty="No open invitations. Add a member above to invite a user.",
    )


@panel_of(User, scope=Scope.READ_PEOPLE)
def invitations_of_user(request: HttpRequest, user: User) -> Panel | None:
    """For superusers only: it shows which organisations have invited the user."""
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
        empty="No open invitations for this user.",
    )


def _cells(invitation: Invitation, back_to: str) -> tuple[object, ...]:
    withdraw = action_of(invitation, "withdraw", **{NEXT: back_to})
    return (
        invitation.get_role_display(),
        invitation.created_at,
        invitation.expires_at,
        button(withdraw, "Withdraw", of=f"the invitation of {invitation.email}"),
    )
