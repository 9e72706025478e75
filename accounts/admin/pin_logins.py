"""Logins by PIN: what was asked for, what failed, and the unlock. Codes are shown to nobody."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin.reach import own_users, person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.flows.unlocking import unlock_address
from accounts.models import PinChallenge, PinFailures
from core.admin.display import EmptyState, display
from core.http.origin import origin_of


@admin.register(PinChallenge)
class PinChallengeAdmin(ReadOnlyTenantModelAdmin):
    empty_state = EmptyState(
        "A challenge appears when somebody asks for a PIN code. To see whether codes would "
        "arrive, open a user and send a test message.",
        "Users",
        "admin:accounts_user_changelist",
    )
    list_display = ("email", "user", "tries", "opened_at", "expires_at", "ended_at")
    list_select_related = ("user",)
    search_fields = ("email",)
    search_help_text = "E-mail"
    fields = ("email", "user", "tries", "opened_at", "expires_at", "ended_at")
    readonly_fields = fields

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(user__in=own_users(request))


@admin.register(PinFailures)
class PinFailuresAdmin(ReadOnlyTenantModelAdmin):
    empty_state = EmptyState(
        "Wrong PINs are counted here by address, from its first code on. Nothing is to be done."
    )
    list_display = ("email", "state", "failures_today", "consecutive_failures", "day_started_at")
    search_fields = ("email",)
    search_help_text = "E-mail"
    ordering = ("-consecutive_failures", "email")
    actions = ("unlock_selected",)
    fields = ("email", "state", "failures_today", "day_started_at", "consecutive_failures")
    readonly_fields = fields

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(email__in=own_users(request).values("email"))

    @display(description="State", label={"Open": "success", "Locked": "danger"})
    def state(self, failures: PinFailures) -> str:
        return "Locked" if failures.is_stopped else "Open"

    @admin.action(description="Unlock selected addresses", permissions=["view"])
    def unlock_selected(self, request: HttpRequest, queryset: QuerySet[PinFailures]) -> None:
        for failures in queryset:
            unlock_address(failures.email, origin=origin_of(request), by=person(request))
            self.log_change(request, failures, "Unlocked.")
            self.message_user(
                request, f"{failures.email} may log in by PIN again.", messages.SUCCESS
            )
