"""Devices: what people logged in on by PIN. Revoked here, never made or changed."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from unfold.enums import ActionVariant

from accounts.admin.reach import own_users, person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.flows.revoke_device import revoke_devices
from accounts.models import DeviceToken, User
from core.admin.confirmation import NEXT, Question, ask, is_confirmed, next_address
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import action_of, button, link, page_of
from core.admin.panels import Link, Panel, panel_of
from core.http.origin import origin_of

REVOKE_ALL = "accounts_devicetoken_revoke_all"

_REVOKE_ALL = Question(
    title="Revoke all devices",
    consequences=(
        "All their sessions end at once, and none of these tokens opens another. "
        "The person logs in again with a new PIN code, on each device."
    ),
    button="Revoke all",
)
_REVOKE = Question(
    title="Revoke device",
    consequences=(
        "Its sessions end at once, and its token opens no other. "
        "The person logs in again with a new PIN code."
    ),
    button="Revoke",
)


@admin.register(DeviceToken)
class DeviceAdmin(ReadOnlyTenantModelAdmin):
    empty_state = EmptyState(
        "A device appears when a person logs in on it with a PIN code. Add the person as a user, "
        "and let them ask for a code.",
        "Add user",
        "admin:accounts_user_add",
    )
    list_display = ("shown_label", "user", "state", "device", "created_at", "last_used_at")
    list_filter = (("user", ScopedAutocompleteFilter),)
    list_select_related = ("user",)
    sortable_by = ("shown_label", "user", "created_at", "last_used_at")
    search_fields = ("label", "user__email")
    search_help_text = "Label or e-mail"
    actions = ("revoke_selected",)
    actions_detail = ("revoke",)
    fields = ("id", "user", "device", "label", "state", "created_at", "last_used_at", "revoked_at")
    readonly_fields = fields

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.filter(user__in=own_users(request))

    def has_revoke_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether there is something to revoke: the list's action, or this device."""
        if object_id is None:
            return self.has_view_permission(request)
        device_token = self.get_object(request, object_id)
        return device_token is not None and device_token.revoked_at is None

    @display(description="Device", ordering="label")
    def shown_label(self, device_token: DeviceToken) -> str:
        return device_token.label or "Without a label"

    @display(description="State", label={"Active": "success", "Revoked": "danger"})
    def state(self, device_token: DeviceToken) -> str:
        return "Active" if device_token.revoked_at is None else "Revoked"

    @action(
        description="Revoke", permissions=["revoke"], variant=ActionVariant.DANGER, icon="block"
    )
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        device_token = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _REVOKE, [device_token])
        self._revoke(request, [device_token])
        return redirect(next_address(request, page_of(device_token)))

    def get_urls(self) -> list[URLPattern]:
        revoke_all = self.admin_site.admin_view(self.revoke_all)
        return [
            path("of_user/<uuid:user_id>/revoke/", revoke_all, name=REVOKE_ALL),
            *super().get_urls(),
        ]

    def revoke_all(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """What the user's page offers: all their devices that are not revoked yet."""
        user = get_object_or_404(own_users(request), pk=user_id)
        live = list(_live_devices(user))
        if not is_confirmed(request):
            return ask(self, request, _REVOKE_ALL, live)
        self._revoke(request, live)
        return redirect(page_of(user))

    @admin.action(description="Revoke selected devices", permissions=["revoke"])
    def revoke_selected(
        self, request: HttpRequest, queryset: QuerySet[DeviceToken]
    ) -> HttpResponse | None:
        if not is_confirmed(request):
            return ask(self, request, _REVOKE, queryset)
        self._revoke(request, queryset)
        return None

    def _revoke(self, request: HttpRequest, device_tokens: Iterable[DeviceToken]) -> None:
        by = person(request)
        revoked = revoke_devices(device_tokens, origin=origin_of(request), by=by)
        LogEntry.objects.log_actions(by.pk, revoked, CHANGE, "Revoked.")
        are_revoked = (
            f"{revoked[0]} is revoked."
            if len(revoked) == 1
            else f"{len(revoked)} devices are revoked."
        )
        self.message_user(request, are_revoked, messages.SUCCESS)


def _live_devices(user: User) -> QuerySet[DeviceToken]:
    return user.device_tokens.filter(revoked_at__isnull=True).select_related("user")


@panel_of(User)
def devices_of_user(request: HttpRequest, user: User) -> Panel | None:
    if not own_users(request).filter(pk=user.pk).exists():
        return None
    live = list(_live_devices(user))
    revoke_all = Link("Revoke all devices", reverse(f"admin:{REVOKE_ALL}", args=[user.pk]))
    return Panel(
        title="Devices",
        headers=("Device", "Created", "Last used", "Action"),
        rows=[
            (
                link(page_of(device_token), device_token.label or "Without a label"),
                device_token.created_at,
                device_token.last_used_at or "Never",
                button(
                    action_of(device_token, "revoke", **{NEXT: page_of(user)}),
                    "Revoke",
                    of=device_token.label or "the device without a label",
                ),
            )
            for device_token in live
        ],
        empty="No device. One appears here when this person logs in on it with a PIN code.",
        links=(revoke_all,) if live else (),
    )
