"""Wrong passwords at the admin's own door: for superusers, who can end a lock-out."""

from typing import Any

from axes.models import AccessFailureLog
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from accounts.admin.decorators import display
from accounts.admin.empty_state import EmptyState
from accounts.admin.reach import person
from accounts.admin.superusers_only import SuperusersOnly
from accounts.flows.reopen_admin_login import reopen_admin_login
from config.http.origin import origin_of


@admin.register(AccessFailureLog)
class LoginFailureAdmin(SuperusersOnly, ModelAdmin):
    empty_state = EmptyState(
        "Wrong passwords at this admin's door stand here for an hour. There was none."
    )
    list_display = ("username", "shown_at", "ip_address", "user_agent")
    search_fields = ("username",)
    search_help_text = "E-mail"
    ordering = ("-attempt_time",)
    actions = ("forgive_selected",)
    fields = ("username", "shown_at", "ip_address", "user_agent")
    readonly_fields = fields

    @display(description="When (UTC)", ordering="attempt_time")
    def shown_at(self, failure: Any) -> str:
        return f"{failure.attempt_time:%Y-%m-%d %H:%M:%S}"

    @admin.action(description="Let these users try again", permissions=["view"])
    def forgive_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for email in sorted(set(queryset.values_list("username", flat=True))):
            reopen_admin_login(email, origin=origin_of(request), by=person(request))
            self.message_user(request, f"{email} may log in again.", messages.SUCCESS)
