"""PIN requests, PIN lockouts and failed admin logins. PIN codes are never shown."""

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin import site
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from accounts.admin.event_words import reason_of
from accounts.admin.reach import is_superuser, own_users, person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.admin.users.locks import pin_lock_of
from accounts.flows.unlocking import unlock_address
from accounts.models import AuthEvent, AuthEventKind, Organisation, PinChallenge, PinFailures, User
from accounts.models.pin_failures import DAY
from accounts.scopes import Scope
from core.admin.display import EmptyState, display
from core.admin.panels import Panel, panel_of
from core.admin.times import relative
from core.database.ids import first_id_at
from core.http.origin import origin_of

_SHOWN = 10
_SHOWN_FOR = timedelta(days=1)


@panel_of(User, scope=Scope.READ_PEOPLE)
def failed_logins(request: HttpRequest, user: User) -> Panel | None:
    """For administrators who may unlock the login."""
    if not is_superuser(request) and not own_users(request).filter(pk=user.pk).exists():
        return None
    # Whatever organisation they are recorded under: it was the user's home at that time.
    events = site.get_model_admin(AuthEvent).get_queryset(request)
    failed = events.filter(
        kind=AuthEventKind.ADMIN_LOGIN_REFUSED,
        pk__gte=first_id_at(timezone.now() - _SHOWN_FOR),
        email=user.email,
    ).order_by("-pk")[:_SHOWN]
    if not failed and not user.is_staff:
        return None
    return Panel(
        title="Failed admin logins",
        headers=("Time", "Reason", "Client address", "Browser"),
        rows=[
            (
                relative(event.at),
                reason_of(event),
                event.client_address or "Unknown",
                event.user_agent,
            )
            for event in failed
        ],
        empty="No failed logins in the last 24 hours.",
    )


@admin.register(PinChallenge)
class PinChallengeAdmin(ReadOnlyTenantModelAdmin):
    empty_state = EmptyState(
        "A request appears when somebody asks for a PIN code. To check that codes arrive, open a "
        "user and send a test message.",
        "Users",
        "admin:accounts_user_changelist",
    )
    view_scope = Scope.READ_PEOPLE
    list_display = ("email", "user", "tries", "opened_at", "expires_at", "ended_at")
    list_select_related = ("user",)
    search_fields = ("email",)
    search_help_text = "E-mail"
    fields = ("email", "user", "device", "tries", "opened_at", "expires_at", "ended_at")
    readonly_fields = fields

    def place_of(self, row: PinChallenge) -> Organisation | None:
        return None if row.user is None else row.user.home

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(user__in=own_users(request))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.prefetch_related("tries_of_devices")


class LockedChangeList(ChangeList):
    root_queryset: Any

    def get_queryset(self, request: HttpRequest, *args: Any) -> QuerySet[Any]:
        self.root_queryset = self.root_queryset.stopped()
        rows: QuerySet[Any] = super().get_queryset(request, *args)
        return rows


@admin.register(PinFailures)
class PinFailuresAdmin(ReadOnlyTenantModelAdmin):
    """Lists those that are locked now; the page of another tells its counts."""

    empty_state = EmptyState(
        "Nobody is locked out of PIN login. An address appears here after too many wrong PINs, "
        "until the lockout ends or somebody unlocks it."
    )
    view_scope = Scope.READ_PEOPLE
    action_scopes = {"unlock_selected": Scope.WRITE_PEOPLE}
    list_display = ("email", "why", "ends")
    search_fields = ("email",)
    search_help_text = "E-mail"
    ordering = ("-consecutive_failures", "email")
    actions = ("unlock_selected",)
    fields = ("email", "state", "failures_today", "counting_since", "consecutive_failures")
    readonly_fields = fields

    def place_of(self, row: PinFailures) -> Organisation | None:
        user = User.objects.find_by_email(row.email)
        return None if user is None else user.home

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(email__in=own_users(request).values("email"))

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LockedChangeList

    @display(description="Reason")
    def why(self, failures: PinFailures) -> str:
        return pin_lock_of(failures).why

    @display(description="Ends")
    def ends(self, failures: PinFailures) -> SafeString | str:
        if failures.is_stopped_until_unlocked:
            return "When unlocked"
        return relative(failures.day_started_at + DAY)

    @display(description="State", label={"Not locked": "success", "Locked": "danger"})
    def state(self, failures: PinFailures) -> str:
        return "Locked" if failures.is_stopped else "Not locked"

    @display(description="Counting since", ordering="day_started_at")
    def counting_since(self, failures: PinFailures) -> SafeString:
        return relative(failures.day_started_at)

    @admin.action(description="Unlock selected addresses", permissions=["view"])
    def unlock_selected(self, request: HttpRequest, queryset: QuerySet[PinFailures]) -> None:
        for failures in queryset:
            unlock_address(failures.email, origin=origin_of(request), by=person(request))
            self.log_change(request, failures, "Unlocked.")
            self.message_user(
                request, f"{failures.email} can log in by PIN again.", messages.SUCCESS
            )
