"""The audit log: read-only, newest first by primary key, so that long logs stay fast."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.models import AuthEvent, AuthEventKind, User
from core.admin.display import DANGER, INFO, SUCCESS, WARNING, EmptyState, display
from core.admin.filters import PeriodFilter, ScopedAutocompleteFilter

_COLOURS = {
    AuthEventKind.SESSION_OPENED: SUCCESS,
    AuthEventKind.SESSION_REFUSED: DANGER,
    AuthEventKind.PIN_NOT_SENT: WARNING,
    AuthEventKind.PIN_REFUSED: DANGER,
    AuthEventKind.DEVICE_ADDED: SUCCESS,
    AuthEventKind.DEVICE_REVOKED: WARNING,
    AuthEventKind.API_KEY_ISSUED: SUCCESS,
    AuthEventKind.API_KEY_REVOKED: WARNING,
    AuthEventKind.CALL_TOKEN_ISSUED: SUCCESS,
    AuthEventKind.USER_DEACTIVATED: WARNING,
    AuthEventKind.INVITATION_ACCEPTED: SUCCESS,
    AuthEventKind.INVITATION_DECLINED: WARNING,
    AuthEventKind.TEST_MESSAGE_SENT: SUCCESS,
    AuthEventKind.TEST_MESSAGE_NOT_SENT: WARNING,
    AuthEventKind.RATE_LIMITED: DANGER,
    AuthEventKind.ADMIN_LOGIN: SUCCESS,
    AuthEventKind.ADMIN_LOGIN_REFUSED: DANGER,
}
_LABELS = {kind.value: _COLOURS.get(kind, INFO) for kind in AuthEventKind}


@admin.register(AuthEvent)
class AuthEventAdmin(ReadOnlyTenantModelAdmin):
    """Organisations see their own events; only superusers see those of no organisation."""

    empty_state = EmptyState(
        "Every use of a credential is recorded here: logins, PINs, keys and changes to users. "
        "Events appear automatically."
    )
    list_display = (
        "shown_at",
        "shown_kind",
        "reason",
        "email",
        "credential",
        "client_address",
        "organisation",
    )
    list_filter = (
        ("kind", ChoicesDropdownFilter),
        ("user", ScopedAutocompleteFilter),
        ("at", PeriodFilter),
    )
    list_filter_submit = True
    list_select_related = ("organisation",)
    search_fields = ("credential",)
    search_help_text = "Public id of a key, device, session or hook, or a request id"
    ordering = ("-id",)
    actions = None
    fields = (
        "shown_at",
        "shown_kind",
        "reason",
        "organisation",
        "user",
        "email",
        "credential",
        "client_address",
        "user_agent",
        "request_id",
    )
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        return queryset.filter(Q(credential=term) | Q(request_id=term)), False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Leaves out a user who has left: the event keeps their e-mail of that time."""
        fields = super().get_fields(request, obj)
        user = None if obj is None else obj.user
        if user is None or user.is_superuser or self._users(request).filter(pk=user.pk).exists():
            return fields
        return [name for name in fields if name != "user"]

    def _users(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.admin_site.get_model_admin(User).get_queryset(request)
        return rows

    @display(description="Time (UTC)")
    def shown_at(self, event: AuthEvent) -> str:
        return f"{event.at:%Y-%m-%d %H:%M:%S}"

    @display(description="Event", label=_LABELS)
    def shown_kind(self, event: AuthEvent) -> str:
        return event.kind
