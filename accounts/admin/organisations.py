"""Organisations in the admin: the list, the page with its members, and the run quota."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import Count, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from accounts.admin.invite_administrator import OrganisationInvitation
from accounts.admin.members import AsksBeforeRoles, MembersInline, tell_of_invitations
from accounts.admin.reach import is_superuser
from accounts.admin.refusals import RefusalsAsMessages
from accounts.admin.tenancy import TenantModelAdmin
from accounts.flows.organisations import create_organisation, save_organisation
from accounts.models import Membership, Organisation
from accounts.scopes import Scope
from core.admin.display import EmptyState, display, size_text
from core.admin.flow_forms import EXPECTED_REVISION
from core.http.origin import origin_of

_COLUMNS = frozenset(field.name for field in Organisation._meta.fields)
_RETENTION = ("runs_kept_days", "runs_kept", "run_bytes_quota")
# Retention costs the installation storage, so a tenant cannot change it: these show what applies.
_IN_FORCE = ("days_in_force", "runs_in_force", "quota_in_force")


def _days(organisation: Organisation) -> str:
    days = organisation.run_days_limit
    return "Ever" if days is None else f"{days:,} day{pluralize(days)}"


def _runs(organisation: Organisation) -> str:
    number = organisation.run_count_limit
    return "No limit" if number is None else f"{number:,}"


def _quota(organisation: Organisation) -> str:
    size = organisation.run_bytes_limit
    return "No quota" if size is None else size_text(size)


_DEFAULTS = dict(zip(_RETENTION, (_days, _runs, _quota), strict=True))

# Cells of the list by organisation, read for all organisations of a page at once.
Cells = Mapping[UUID, Sequence[SafeString | str]]
_activity: list[Callable[[Sequence[Organisation]], Cells]] = []


def register_activity(read: Callable[[Sequence[Organisation]], Cells]) -> None:
    """Registers what reads the columns *Last run*, *Runs of 24 hours* and *Storage* of the list."""
    _activity.append(read)


_storage_in_use: list[Callable[[Organisation], SafeString]] = []


def register_storage_in_use(show: Callable[[Organisation], SafeString]) -> None:
    """Registers what shows how much of its quota an organisation uses."""
    _storage_in_use.append(show)


class OrganisationChangeList(ChangeList):
    """Reads what apps above have registered, of the listed organisations only."""

    result_list: Any

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        organisations = list(self.result_list)
        cells = [read(organisations) for read in _activity]
        for organisation in organisations:
            organisation.cells = [cell for each in cells for cell in each[organisation.pk]]
        self.result_list = organisations


def _cell(organisation: Any, number: int) -> SafeString | str:
    cell: SafeString | str = organisation.cells[number]
    return cell


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
    list_display = (
        "name",
        "is_active",
        "last_run",
        "runs_of_day",
        "storage",
        "members",
        "created_at",
    )
    list_filter = ("is_active",)
    sortable_by = ("name", "is_active", "created_at")
    ordering = ("name",)
    search_fields = ("name",)
    search_help_text = "Name"
    inlines = (MembersInline,)
    actions_detail = ("change_roles", "invite_administrator")
    proved_pages = frozenset({"change_roles", "invite_administrator"})
    add_fieldsets = ((None, {"fields": ("name",)}),)
    fieldsets: tuple[tuple[str | None, dict[str, Any]], ...] = (
        (None, {"fields": ("name", "is_active", "id", "created_at")}),
        ("Runs", {"fields": (*_RETENTION, "payloads_kept")}),
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
        return shown if is_superuser(request) else [*shown, "is_active", *_IN_FORCE]

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or is_superuser(request):
            return fieldsets
        in_force = dict(zip(_RETENTION, _IN_FORCE, strict=True))
        return [
            (title, {"fields": [in_force.get(name, name) for name in options["fields"]]})
            for title, options in fieldsets
        ]

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> forms.Field | None:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in _RETENTION:
            default = _DEFAULTS[db_field.name](Organisation())
            field.widget.attrs["placeholder"] = f"{default} (default)"
        return field

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Adds the number of members, counted only for the rows shown."""
        memberships = Membership.objects.filter(organisation=OuterRef("pk")).order_by()
        count = memberships.values("organisation").annotate(count=Count("pk")).values("count")
        return super().get_queryset(request).annotate(member_count=Coalesce(Subquery(count), 0))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return OrganisationChangeList

    @display(description="Last run")
    def last_run(self, organisation: Any) -> SafeString | str:
        return _cell(organisation, 0)

    @display(description="Runs of 24 hours")
    def runs_of_day(self, organisation: Any) -> SafeString | str:
        return _cell(organisation, 1)

    @display(description="Storage")
    def storage(self, organisation: Any) -> SafeString | str:
        return _cell(organisation, 2)

    @display(description="Members")
    def members(self, organisation: Any) -> int:
        count: int = organisation.member_count
        return count

    @display(description="Runs are kept for")
    def days_in_force(self, organisation: Organisation) -> str:
        return _days(organisation)

    @display(description="Runs kept at most")
    def runs_in_force(self, organisation: Organisation) -> str:
        return _runs(organisation)

    @display(description="Storage quota for runs")
    def quota_in_force(self, organisation: Organisation) -> str:
        return _quota(organisation)

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
                [name for name in form.changed_data if name in _COLUMNS],
                expected_revision=form.cleaned_data.get(EXPECTED_REVISION),
                origin=origin,
            )
            return organisation
        return create_organisation(organisation.name, origin=origin)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        tell_of_invitations(self, request, formset)
