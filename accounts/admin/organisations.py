"""Organisations in the admin: the list, the page with its members, and the run quota."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from accounts.admin.invite_administrator import OrganisationInvitation
from accounts.admin.members import AsksBeforeRoles, MembersInline, tell_of_invitations
from accounts.admin.reach import is_superuser
from accounts.admin.refusals import RefusalsAsMessages
from accounts.admin.tenancy import TenantModelAdmin
from accounts.flows.organisations import create_organisation, save_organisation
from accounts.models import Membership, Organisation
from accounts.scopes import Scope
from core.admin.display import EmptyState, display
from core.admin.revisions import EXPECTED_REVISION
from core.http.origin import origin_of

_RETENTION = ("runs_kept_days", "runs_kept", "run_bytes_quota")
# These cost the installation storage or lock a tenant out, so a tenant cannot change them.
_SUPERUSER_FIELDS = ("is_active", *_RETENTION)

_storage_in_use: list[Callable[[Organisation], SafeString]] = []


def register_storage_in_use(show: Callable[[Organisation], SafeString]) -> None:
    """Registers what shows how much of its quota an organisation uses."""
    _storage_in_use.append(show)


@admin.register(Organisation)
class OrganisationAdmin(
    AsksBeforeRoles, OrganisationInvitation, RefusalsAsMessages, TenantModelAdmin
):
    """Superusers add and deactivate; administrators rename and manage members."""

    empty_state = EmptyState(
        "Users, API keys, scripts and runs belong to an organisation. Add the first one.",
        "Add organisation",
        "admin:accounts_organisation_add",
    )
    help_texts = {
        "name": "Display name, such as “Acme GmbH”. Changing it keeps the id and URLs.",
        "is_active": (
            "When off, all its keys, sessions and hooks are refused immediately. These sessions "
            "stay ended when it is switched on again."
        ),
    }
    organisation_path = "pk"
    view_scope = Scope.READ_PEOPLE
    page_scopes = {
        "change_roles": Scope.WRITE_PEOPLE,
        "invite_administrator": Scope.WRITE_PEOPLE,
    }
    list_display = ("name", "is_active", "members", "created_at")
    list_filter = ("is_active",)
    sortable_by = ("name", "is_active", "created_at")
    ordering = ("name",)
    search_fields = ("name",)
    search_help_text = "Name"
    inlines = (MembersInline,)
    actions_detail = ("change_roles", "invite_administrator")
    proved_pages = frozenset({"change_roles", "invite_administrator"})
    add_fieldsets = ((None, {"fields": ("name",)}),)
    fieldsets = (
        (None, {"fields": ("name", "is_active", "id", "created_at")}),
        ("Runs", {"fields": ("failure_mails", *_RETENTION, "payloads_kept")}),
    )

    def organisation_that_asks(
        self, request: HttpRequest, object_id: str | None
    ) -> Organisation | None:
        found: Organisation | None = self.get_object(request, object_id) if object_id else None
        return found

    def place_of(self, row: Organisation) -> Organisation:
        return row

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        shown = ["id", "created_at", "payloads_kept"]
        return shown if is_superuser(request) else [*shown, *_SUPERUSER_FIELDS]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Adds the number of members, counted only for the rows shown."""
        memberships = Membership.objects.filter(organisation=OuterRef("pk")).order_by()
        count = memberships.values("organisation").annotate(count=Count("pk")).values("count")
        return super().get_queryset(request).annotate(member_count=Coalesce(Subquery(count), 0))

    @display(description="Members")
    def members(self, organisation: Any) -> int:
        count: int = organisation.member_count
        return count

    @display(description="Payloads kept")
    def payloads_kept(self, organisation: Organisation) -> SafeString:
        return format_html_join("", "{}", ((show(organisation),) for show in _storage_in_use))

    def save_by_flow(
        self, request: HttpRequest, form: forms.ModelForm[Organisation], change: bool
    ) -> Organisation:
        organisation, origin = form.instance, origin_of(request)
        if change:
            save_organisation(
                organisation,
                [name for name in form.changed_data if name != EXPECTED_REVISION],
                expected_revision=form.cleaned_data.get(EXPECTED_REVISION),
                origin=origin,
            )
            return organisation
        return create_organisation(organisation.name, origin=origin)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        tell_of_invitations(self, request, formset)
