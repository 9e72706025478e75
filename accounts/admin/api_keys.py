"""API keys: issued here, with the secret shown once; revoked, never changed."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timeuntil
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.admin.api_key_commands import first_query_of
from accounts.admin.reach import person
from accounts.admin.tenancy import TenantModelAdmin
from accounts.flows.api_keys import IssuedApiKey, issue_api_key, revoke_api_keys, rotate_api_key
from accounts.models import ApiKey, Organisation
from accounts.networks import canonical_networks
from core.admin.confirmation import Question, ask, is_confirmed, next_address
from core.admin.display import INFO, WARNING, EmptyState, action, display, label
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.issuing import IssuedOnAdd, OverlapForm, show_once
from core.admin.links import action_of, link_to, list_of, page_of
from core.admin.panels import Link, Panel, panel_of
from core.http.origin import origin_of

_EXPIRES_SOON = timedelta(days=30)
ACTIVE, EXPIRED, REVOKED = "Active", "Expired", "Revoked"
_HISTORY = ("created_at", "shown_creator", "last_used_at", "last_used_from", "revoked_at")
_LABELS = {ACTIVE: "success", EXPIRED: "warning", REVOKED: "danger"}

_REVOKE = Question(
    title="Revoke API key",
    consequences=(
        "Programs that use it are refused from now on, and their sessions end at once. "
        "This cannot be undone: issue a new key instead."
    ),
    button="Revoke",
)
_ROTATE = Question(
    title="Rotate secret",
    consequences=(
        "The key gets a new secret, shown once on the next page. Sessions that are open stay "
        "open: if the secret leaked, revoke the key instead."
    ),
    button="Rotate",
)


class IssueApiKeyForm(forms.ModelForm[ApiKey]):
    """What a new key is told. The key and its secret are made on saving."""

    allowed_networks = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=(
            "Where it may be used from, one a line: 192.0.2.0/24, 2001:db8::/48 or an address. "
            "Empty: anywhere."
        ),
    )

    def clean_allowed_networks(self) -> list[str]:
        return canonical_networks(self.cleaned_data["allowed_networks"].split())

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise ValidationError("This time has passed already.", code="invalid")
        return expires_at


@admin.register(ApiKey)
class ApiKeyAdmin(IssuedOnAdd, TenantModelAdmin):
    empty_state = EmptyState(
        "A program needs a key to open sessions and to use Admin GraphQL. Issue one for each "
        "program, so that each can be revoked by itself.",
        "Issue API key",
        "admin:accounts_apikey_add",
    )
    labels = {"expires_at": "Expires at (UTC)"}
    help_texts = {
        "organisation": "Whose key it is: programs with it reach this organisation and no other.",
        "name": "What uses it, like “warehouse sync”: one program a key. Programs never see it.",
        "expires_at": (
            "From then on it is refused. Empty: never. Administrators are told by e-mail "
            "30, 7 and 1 days before."
        ),
    }

    class Media:
        js = (Script("moonhook/copy.js", defer=True),)

    issue_button = "Issue API key"
    change_form_outer_after_template = "admin/api_key_page.html"
    form = IssueApiKeyForm
    list_display = ("name", "key", "organisation", "state", "notices", "last_used_at")
    list_filter = (("organisation", ScopedAutocompleteFilter),)
    sortable_by = ("name", "key", "organisation", "last_used_at")
    list_select_related = ("organisation",)
    search_fields = ("name", "key")
    search_help_text = "Name or key"
    autocomplete_fields = ("organisation",)
    actions = ("revoke_selected",)
    actions_detail = ("rotate", "revoke")
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

    def has_rotate_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return object_id is not None and self.has_revoke_permission(request, object_id)

    def has_revoke_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether there is something to revoke: the list's action, or this key."""
        if object_id is None:
            return self.has_view_permission(request)
        api_key = self.get_object(request, object_id)
        return api_key is not None and api_key.revoked_at is None

    @display(description="Created by")
    def shown_creator(self, api_key: ApiKey) -> str:
        creator = api_key.created_by
        return "" if creator is None else creator.email_known_to(api_key.organisation_id) or ""

    @display(description="State", label=_LABELS)
    def state(self, api_key: ApiKey) -> str:
        if api_key.revoked_at is not None:
            return REVOKED
        return EXPIRED if api_key.is_expired else ACTIVE

    @display(description="Notices")
    def notices(self, api_key: ApiKey) -> SafeString | str:
        """What is worth looking at, for a key that is good."""
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
            labels.append(label(f"Previous secret good until {until:%Y-%m-%d %H:%M}", INFO))
        joined = format_html_join("", "{}", ((one,) for one in labels))
        return format_html('<div class="mh-labels">{}</div>', joined)

    @display(description="Allowed networks")
    def shown_networks(self, api_key: ApiKey) -> str:
        return ", ".join(api_key.allowed_networks) or "Anywhere"

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
            "commands": first_query_of(api_key),
            "previous_until": api_key.previous_good_until,
            "rotate": action_of(api_key, "rotate"),
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    def save_model(
        self, request: HttpRequest, obj: ApiKey, form: forms.ModelForm[ApiKey], change: bool
    ) -> None:
        issued = issue_api_key(
            obj.organisation,
            name=obj.name,
            expires_at=obj.expires_at,
            allowed_networks=obj.allowed_networks,
            created_by=person(request),
            origin=origin_of(request),
        )
        obj.pk = issued.api_key.pk
        obj.refresh_from_db()
        request.issued = issued  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._show(request, request.issued, "API key issued")  # type: ignore[attr-defined]

    def _show(self, request: HttpRequest, issued: IssuedApiKey, title: str) -> HttpResponse:
        return show_once(
            self,
            request,
            "admin/issued_api_key.html",
            {
                "title": title,
                "api_key": issued.api_key,
                "secret": issued.secret,
                "commands": first_query_of(issued.api_key, issued.secret),
                "previous_until": issued.api_key.previous_good_until,
                "done": page_of(issued.api_key),
            },
        )

    @action(
        description="Rotate secret",
        permissions=["rotate"],
        variant=ActionVariant.WARNING,
        icon="sync",
    )
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        api_key = self.get_or_404(request, object_id)
        form = OverlapForm(request.POST if is_confirmed(request) else None)
        if not form.is_valid():
            return ask(self, request, _ROTATE, [api_key], form)
        issued = rotate_api_key(
            api_key,
            overlap_seconds=form.cleaned_data["overlap_seconds"],
            origin=origin_of(request),
            by=person(request),
        )
        self.log_change(request, api_key, "Rotated the secret.")
        return self._show(request, issued, "Secret rotated")

    @action(
        description="Revoke", permissions=["revoke"], variant=ActionVariant.DANGER, icon="block"
    )
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        api_key = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _REVOKE, [api_key])
        self._revoke(request, [api_key])
        return redirect(next_address(request, page_of(api_key)))

    @admin.action(description="Revoke selected API keys", permissions=["revoke"])
    def revoke_selected(
        self, request: HttpRequest, queryset: QuerySet[ApiKey]
    ) -> HttpResponse | None:
        if not is_confirmed(request):
            return ask(self, request, _REVOKE, queryset)
        self._revoke(request, queryset)
        return None

    def _revoke(self, request: HttpRequest, api_keys: Iterable[ApiKey]) -> None:
        by = person(request)
        revoked = revoke_api_keys(api_keys, origin=origin_of(request), by=by)
        LogEntry.objects.log_actions(by.pk, revoked, CHANGE, "Revoked.")
        are_revoked = (
            f"{revoked[0]} is revoked."
            if len(revoked) == 1
            else f"{len(revoked)} API keys are revoked."
        )
        self.message_user(request, are_revoked, messages.SUCCESS)


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
        empty="No API key. Issue one, so that a program can open sessions and use Admin GraphQL.",
        links=(
            Link("All API keys", list_of(ApiKey, organisation__id__exact=organisation.pk)),
            Link("Issue API key", list_of(ApiKey, "add", organisation=organisation.pk)),
        ),
    )
