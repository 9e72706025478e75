"""The audit log: read-only, newest first by primary key, so that long logs stay fast."""

from ipaddress import ip_address
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts.addresses import canonical_email
from accounts.admin.event_words import colour_of, describe, reason_of
from accounts.admin.reach import is_superuser
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.models import HIDDEN_ACTORS, ActorKind, AuthEvent, SubjectKind, User
from accounts.scopes import Scope
from core.admin.display import EmptyState, display, label
from core.admin.filters import PeriodFilter, ScopedAutocompleteFilter
from core.admin.times import relative
from core.plain_text import storable

# A search reads rows, since an index on each name would slow down every login.
SEARCHED = 50_000
_LONGEST_TERM = 254


def newest(rows: QuerySet[AuthEvent], number: int) -> QuerySet[AuthEvent]:
    """Bounds what a condition without an index reads to the newest rows."""
    keys = list(rows.order_by("-pk").values_list("pk", flat=True)[number - 1 : number])
    return rows.filter(pk__gte=keys[0]) if keys else rows


class PersonFilter(ScopedAutocompleteFilter):
    """Events by a person, and the newest ones about them.

    Leaves out the events of actors that the viewer may not know.
    """

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        by_them = super().queryset(request, queryset)
        if by_them is queryset or by_them.query.is_empty():
            return by_them
        if not is_superuser(request):
            by_them = by_them.naming_the_actor()  # type: ignore[attr-defined]
        about = newest(queryset, SEARCHED).filter(
            subject_kind=SubjectKind.USER, subject_id=str(self.value())
        )
        return by_them | about


@admin.register(AuthEvent)
class AuthEventAdmin(ReadOnlyTenantModelAdmin):
    """Organisations see their own events; only superusers see those of no organisation."""

    empty_state = EmptyState(
        "Logins, and changes to users, keys, scripts, hooks and secrets are recorded here. "
        "Events appear automatically."
    )
    filtered_empty_states = {
        "Failed admin logins": EmptyState(
            "Refused attempts to log in to this admin appear here.",
            title="No failed admin logins",
        )
    }
    view_scope = Scope.READ_AUDIT
    list_display = ("when", "who", "what", "to_whom", "from_where")
    list_filter = (
        ("kind", ChoicesDropdownFilter),
        ("user", PersonFilter),
        ("at", PeriodFilter),
    )
    list_filter_submit = True
    list_select_related = ("organisation", "user")
    # The search is our own; the name only makes Django show its box.
    search_fields = ("credential",)
    search_help_text = (
        f"Name, e-mail, client address or id. Searches the newest {SEARCHED:,} events of the "
        "chosen period"
    )
    ordering = ("-id",)
    actions = None
    fieldsets = (
        (None, {"fields": ("when", "who", "what", "to_whom", "from_where", "user_agent")}),
        ("Details", {"fields": ("organisation", "code", "reason", "credential", "request_id")}),
    )
    readonly_fields = (
        "when",
        "who",
        "what",
        "to_whom",
        "from_where",
        "user_agent",
        "organisation",
        "code",
        "reason",
        "credential",
        "request_id",
    )

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        return (*self.list_display, "organisation") if is_superuser(request) else self.list_display

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist: Any = super().get_changelist_instance(request)
        changelist.result_list = list(changelist.result_list)
        describe(self.admin_site, request, changelist.result_list)
        return changelist

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        event = super().get_object(request, object_id, from_field)
        if event is not None:
            describe(self.admin_site, request, [event])
        return event

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Searches what the list shows to this viewer, and ids."""
        term = storable(search_term.strip())[:_LONGEST_TERM]
        if not term:
            return queryset, False
        found = Q(credential=term) | Q(request_id=term) | Q(subject_id=term)
        found |= Q(actor_id=term) & ~Q(actor_kind__in=HIDDEN_ACTORS)
        found |= Q(actor_label__icontains=term) | Q(subject_label__icontains=term)
        found |= Q(email__icontains=term)
        users = self._users(request).filter(email=canonical_email(term)).order_by()
        keys = list(users.values_list("pk", flat=True)[:1])
        if is_superuser(request):
            found |= Q(user__in=keys) | Q(actor_id__in=[str(key) for key in keys])
        if (address := _address_in(term)) is not None:
            found |= Q(client_address=address)
        return newest(queryset, SEARCHED).filter(found), False

    def _users(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.admin_site.get_model_admin(User).get_queryset(request)
        return rows

    @display(description="When")
    def when(self, event: AuthEvent) -> SafeString:
        return relative(event.at)

    @display(description="Who")
    def who(self, event: Any) -> SafeString | str:
        return event.who

    @display(description="What")
    def what(self, event: AuthEvent) -> SafeString:
        return format_html(
            '<span class="mh-party">{}<span class="mh-quiet">{}</span></span>',
            label(event.get_kind_display(), colour_of(event)),
            reason_of(event),
        )

    @display(description="Event")
    def code(self, event: AuthEvent) -> str:
        return event.kind

    @display(description="Target")
    def to_whom(self, event: Any) -> SafeString | str:
        return event.to_whom

    @display(description="From where")
    def from_where(self, event: AuthEvent) -> str:
        if event.actor_kind == ActorKind.COMMAND:
            return "Command line"
        return event.client_address or ""


def _address_in(term: str) -> str | None:
    try:
        return str(ip_address(term))
    except ValueError:
        return None
