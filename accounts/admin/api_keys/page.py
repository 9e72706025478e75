"""API keys in the admin: the list, the page of a key, revoking. A key is never changed."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timeuntil
from unfold.enums import ActionVariant

from accounts.admin.api_keys.commands import commands_of
from accounts.admin.api_keys.issuing import ApiKeyIssuing
from accounts.admin.reach import person
from accounts.admin.revoked_filter import RevokedFilter
from accounts.admin.tenancy import TenantModelAdmin
from accounts.flows.api_keys import revoke_api_keys
from accounts.models import ApiKey, Organisation
from core.admin.confirmation import Question
from core.admin.display import INFO, WARNING, EmptyState, action, display, label
from core.admin.ending import EndingMixin
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import action_of, link_to, list_of
from core.admin.panels import Link, Panel, panel_of
from core.http.origin import origin_of

ACTIVE, EXPIRED, REVOKED = "Active", "Expired", "Revoked"
_STATE_COLOURS = {ACTIVE: "success", EXPIRED: "warning", REVOKED: "danger"}
_EXPIRES_SOON = timedelta(days=30)
_HISTORY = ("created_at", "shown_creator", "last_used_at", "last_used_from", "revoked_at")


@admin.register(ApiKey)
class ApiKeyAdmin(ApiKeyIssuing, EndingMixin, TenantModelAdmin):
    empty_state = EmptyState(
        "Programs need an API key to open sessions and to use the Admin GraphQL API. Create one "
        "key per program, so that you can revoke each on its own.",
        "Create API key",
        "admin:accounts_apikey_add",
    )
    labels = {"expires_at": "Expires at (UTC)"}
    help_texts = {
        "organisation": "The only organisation that programs using this key can access.",
        "name": "What uses the key, such as “warehouse sync”. Use one key per program.",
        "expires_at": (
            "The key stops working then. Leave empty for no expiry. Administrators are reminded "
            "by e-mail 30, 7 and 1 days before."
        ),
    }

    class Media:
        js = (Script("moonhook/copy.js", defer=True),)

    change_form_outer_after_template = "admin/api_key_page.html"
    list_display = ("name", "key", "organisation", "state", "notices", "last_used_at")
    list_filter = (("organisation", ScopedAutocompleteFilter), RevokedFilter)
    sortable_by = ("name", "key", "organisation", "last_used_at")
    list_select_related = ("organisation",)
    search_fields = ("name", "key")
    search_help_text = "Name or key"
    autocomplete_fields = ("organisation",)
    actions = ("revoke_selected",)
    actions_detail = ("rotate", "revoke")
    end_question = Question(
        title="Revoke API key",
        consequences=(
            "Programs using it lose access immediately, and their sessions end. This cannot be "
            "undone: create a new key instead."
        ),
        button="Revoke",
    )
    ended_word = "revoked"
    add_fieldsets = (
        (None, {"fields": ("organisation", "name", "expires_at", "allowed_networks")}),
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "organisation",
                    "name",
                    "key",
                    "state",
                    "notices",
                    "expires_at",
                    "shown_networks",
                )
            },
        ),
        ("History", {"fields": _HISTORY}),
    )

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        shown = ["key", "state", "notices", "shown_networks", *_HISTORY]
        return shown if obj is None else [*shown, "organisation", "name", "expires_at"]

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    @display(description="Created by")
    def shown_creator(self, api_key: ApiKey) -> str:
        creator = api_key.created_by
        return "" if creator is None else creator.email_known_to(api_key.organisation_id) or ""

    @display(description="State", label=_STATE_COLOURS)
    def state(self, api_key: ApiKey) -> str:
        if api_key.revoked_at is not None:
            return REVOKED
        return EXPIRED if api_key.is_expired else ACTIVE

    @display(description="Notices")
    def notices(self, api_key: ApiKey) -> SafeString | str:
        """Labels for what needs attention; none for a key that is expired or revoked."""
        now = timezone.now()
        if api_key.revoked_at is not None or api_key.is_expired:
            return ""
        labels = []
        if api_key.expires_at is not None and api_key.expires_at <= now + _EXPIRES_SOON:
            labels.append(label(f"Expires in {timeuntil(api_key.expires_at)}", WARNING))
        if api_key.is_unused:
            labels.append(label("Unused for 90 days", WARNING))
        until = api_key.previous_good_until
        if until is not None:
            labels.append(label(f"Previous secret valid until {until:%Y-%m-%d %H:%M} UTC", INFO))
        joined = format_html_join("", "{}", ((one,) for one in labels))
        return format_html('<div class="mh-labels">{}</div>', joined)

    @display(description="Allowed networks")
    def shown_networks(self, api_key: ApiKey) -> str:
        return ", ".join(api_key.allowed_networks) or "Any"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        api_key: ApiKey = self.get_or_404(request, object_id)
        context = {
            **(extra_context or {}),
            "is_good": api_key.revoked_at is None and not api_key.is_expired,
            "commands": commands_of(api_key),
            "previous_until": api_key.previous_good_until,
            "rotate": action_of(api_key, "rotate"),
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    @action(description="Revoke", permissions=["end"], variant=ActionVariant.DANGER, icon="block")
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.ask_and_end_one(request, object_id)

    @admin.action(description="Revoke selected API keys", permissions=["end"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse:
        return self.ask_and_end_selected(request, queryset)

    def is_live(self, row: ApiKey) -> bool:
        return row.revoked_at is None

    def end_rows(self, request: HttpRequest, rows: Iterable[ApiKey]) -> list[ApiKey]:
        return revoke_api_keys(rows, origin=origin_of(request), by=person(request))


@panel_of(Organisation)
def keys_of_organisation(request: HttpRequest, organisation: Organisation) -> Panel:
    live = organisation.api_keys.filter(revoked_at__isnull=True)[:10]
    return Panel(
        title="API keys",
        headers=("Name", "Key", "Created", "Last used"),
        rows=[
            (link_to(api_key), api_key.key, api_key.created_at, api_key.last_used_at or "Never")
            for api_key in live
        ],
        empty="No active API keys. Create one so that a program can open sessions.",
        links=(
            Link("All API keys", list_of(ApiKey, organisation__id__exact=organisation.pk)),
            Link("Create API key", list_of(ApiKey, "add", organisation=organisation.pk)),
        ),
    )
