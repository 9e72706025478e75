"""Devices in the admin: created by PIN logins, revoked here, never changed."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from unfold.enums import ActionVariant

from accounts.admin.reach import own_users, person, refuse_beyond
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.flows.revoke_device import revoke_devices
from accounts.models import DeviceToken, Organisation, User
from accounts.scopes import Scope
from core.admin.confirmation import NEXT, EndingMixin, Question
from core.admin.display import EmptyState, action, display
from core.admin.filters import RevokedFilter, ScopedAutocompleteFilter
from core.admin.links import action_of, button, link, page_of
from core.admin.panels import Link, Panel, panel_of
from core.http.origin import origin_of

REVOKE_ALL = "accounts_devicetoken_revoke_all"

_NO_LABEL = "Unnamed device"

_REVOKE_ALL = Question(
    title="Revoke all devices",
    consequences=(
        "Their sessions end immediately, and their tokens cannot open new ones. The user has to "
        "log in with a new PIN code on each device."
    ),
    button="Revoke all",
)


@admin.register(DeviceToken)
class DeviceAdmin(EndingMixin, ReadOnlyTenantModelAdmin):
    empty_state = EmptyState(
        "A device appears when a user logs in on it with a PIN code. Add a user who can request "
        "a code.",
        "Add user",
        "admin:accounts_user_add",
    )
    view_scope = Scope.READ_PEOPLE
    change_scope = Scope.WRITE_PEOPLE
    page_scopes = {"revoke": Scope.WRITE_PEOPLE, "revoke_all": Scope.WRITE_PEOPLE}
    action_scopes = {"revoke_selected": Scope.WRITE_PEOPLE}
    list_display = ("shown_label", "user", "state", "device", "created_at", "last_used_at")
    list_filter = (("user", ScopedAutocompleteFilter), RevokedFilter)
    list_select_related = ("user",)
    sortable_by = ("shown_label", "user", "created_at", "last_used_at")
    search_fields = ("label", "user__email")
    search_help_text = "Label or e-mail"
    actions = ("revoke_selected",)
    actions_detail = ("revoke",)
    end_question = Question(
        title="Revoke device",
        consequences=(
            "Its sessions end immediately, and its token cannot open new ones. The user has to "
            "log in with a new PIN code."
        ),
        button="Revoke",
    )
    ended_word = "revoked"
    fields = ("id", "user", "device", "label", "state", "created_at", "last_used_at", "revoked_at")
    readonly_fields = fields

    def place_of(self, row: DeviceToken) -> Organisation | None:
        return None if row.user is None else row.user.home

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(user__in=own_users(request))

    @display(description="Device", ordering="label")
    def shown_label(self, device_token: DeviceToken) -> str:
        return device_token.label or _NO_LABEL

    @display(description="State", label={"Active": "success", "Revoked": "danger"})
    def state(self, device_token: DeviceToken) -> str:
        return "Active" if device_token.revoked_at is None else "Revoked"

    @action(description="Revoke", permissions=["end"], variant=ActionVariant.DANGER, icon="block")
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.ask_and_end_one(request, object_id)

    @admin.action(description="Revoke selected devices", permissions=["end"])
    def revoke_selected(
        self, request: HttpRequest, queryset: QuerySet[DeviceToken]
    ) -> HttpResponse:
        return self.ask_and_end_selected(request, queryset)

    def get_urls(self) -> list[URLPattern]:
        revoke_all = self.admin_site.admin_view(self.revoke_all)
        return [
            path("of_user/<uuid:user_id>/revoke/", revoke_all, name=REVOKE_ALL),
            *super().get_urls(),
        ]

    def revoke_all(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """Revokes all active devices of a user; linked from the user's page."""
        user = get_object_or_404(own_users(request), pk=user_id)
        return self.ask_and_end(request, list(_active_devices(user)), page_of(user), _REVOKE_ALL)

    def is_live(self, row: DeviceToken) -> bool:
        return row.revoked_at is None

    def end_rows(self, request: HttpRequest, rows: Iterable[DeviceToken]) -> list[DeviceToken]:
        rows = list(rows)
        refuse_beyond(request, *(row.user for row in rows))
        return revoke_devices(rows, origin=origin_of(request), by=person(request))


def _active_devices(user: User) -> QuerySet[DeviceToken]:
    return user.device_tokens.filter(revoked_at__isnull=True).select_related("user")


@panel_of(User, scope=Scope.READ_PEOPLE)
def devices_of_user(request: HttpRequest, user: User) -> Panel | None:
    if not own_users(request).filter(pk=user.pk).exists():
        return None
    active = list(_active_devices(user))
    revoke_all = Link(
        "Revoke all devices", reverse(f"admin:{REVOKE_ALL}", args=[user.pk]), Scope.WRITE_PEOPLE
    )
    return Panel(
        title="Devices",
        headers=("Device", "Created", "Last used", "Action"),
        rows=[
            (
                link(page_of(device_token), device_token.label or _NO_LABEL),
                device_token.created_at,
                device_token.last_used_at or "Never",
                button(
                    action_of(device_token, "revoke", **{NEXT: page_of(user)}),
                    "Revoke",
                    of=device_token.label or _NO_LABEL,
                ),
            )
            for device_token in active
        ],
        empty="No active devices. One appears here when this user logs in on it with a PIN code.",
        links=(revoke_all,) if active else (),
    )
