"""API keys in the admin: the list, a key's page, creating and rotating, revoking."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timeuntil
from unfold.enums import ActionVariant
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminTextareaWidget,
)

from accounts.addresses import canonical_networks
from accounts.admin.reach import maker_of, person
from accounts.admin.rotating_secrets import RotatingSecretAdmin
from accounts.admin.tenancy import TenantModelAdmin
from accounts.flows.api_keys import IssuedApiKey, issue_api_key, revoke_api_keys, rotate_api_key
from accounts.models import ApiKey, Organisation
from accounts.models.api_key import approver_role
from accounts.scopes import MEANINGS, PRESETS, Scope, in_order, names_of, preset_of
from core.admin.confirmation import EndingMixin, Question
from core.admin.display import INFO, WARNING, EmptyState, action, display, label
from core.admin.filters import RevokedFilter, ScopedAutocompleteFilter
from core.admin.issuing import curl, json_body
from core.admin.links import action_of, link_to, list_of, page_of
from core.admin.panels import Link, PageContext, Panel, panel_of
from core.http.origin import origin_of

_ROTATE = Question(
    title="Rotate secret",
    consequences=(
        "The key gets a new secret, shown once on the next page. Open sessions stay open; if the "
        "secret leaked, revoke the key instead."
    ),
    button="Rotate",
)
_SECRET_PLACEHOLDER = "<secret>"  # noqa: S105
_QUERY = "{ organisation { name } scripts { totalCount } }"
ACTIVE, EXPIRED, ENDED, REVOKED = "Active", "Expired", "Ended", "Revoked"
_STATE_COLOURS = {ACTIVE: "success", EXPIRED: "warning", ENDED: "danger", REVOKED: "danger"}
_EXPIRES_SOON = timedelta(days=30)
# A question names no more keys.
_NAMED = 20
_EVERYTHING, _CHOSEN = "everything", "chosen"
_HISTORY = (
    "created_at",
    "shown_creator",
    "shown_creating_key",
    "shown_approver",
    "last_used_at",
    "last_used_from",
    "revoked_at",
)


class CreateApiKeyForm(forms.ModelForm[ApiKey]):
    allowed_networks = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=(
            "Networks or addresses that may use the key, one per line, such as 192.0.2.0/24 or "
            "2001:db8::1. Leave empty to allow any."
        ),
    )

    preset = forms.ChoiceField(
        label="What may it do?",
        initial=PRESETS[0].name,
        choices=[
            *((preset.name, preset.title) for preset in PRESETS),
            (_EVERYTHING, "Everything"),
            (_CHOSEN, "Scopes chosen below"),
        ],
        widget=UnfoldAdminRadioSelectWidget,
        help_text="Choose the least that the program needs. Each choice is explained below.",
    )
    chosen = forms.MultipleChoiceField(
        label="Scopes",
        required=False,
        choices=[(scope.value, scope.value) for scope in Scope if scope is not Scope.ALL],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Count only with “Scopes chosen below”.",
    )

    def clean(self) -> dict[str, Any] | None:
        if self.cleaned_data.get("preset") == _CHOSEN and not self.cleaned_data.get("chosen"):
            self.add_error("chosen", ValidationError("Choose at least one.", code="required"))
        return super().clean()

    def scopes(self) -> list[str] | None:
        """The names; ``None`` for all that the person has."""
        name = self.cleaned_data["preset"]
        if name == _EVERYTHING:
            return None
        if name == _CHOSEN:
            return list(self.cleaned_data["chosen"])
        [preset] = [preset for preset in PRESETS if preset.name == name]
        return [scope.value for scope in in_order(preset.scopes)]

    def clean_allowed_networks(self) -> list[str]:
        return canonical_networks(self.cleaned_data["allowed_networks"].split())

    def clean_expires_at(self) -> datetime | None:
        expires_at: datetime | None = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= timezone.now():
            raise ValidationError("This time is in the past.", code="invalid")
        return expires_at


class ApiKeyIssuing(RotatingSecretAdmin):
    """Mixin for the model admin of API keys."""

    issue_button = "Create API key"
    credential = "secret"
    issued_title = "API key created"
    issued_template = "admin/issued_api_key.html"
    rotate_question = _ROTATE
    overlap_label = "Keep old secret valid for"
    form = CreateApiKeyForm

    def save_by_flow(
        self, request: HttpRequest, form: forms.ModelForm[ApiKey], change: bool
    ) -> ApiKey:
        key = form.instance
        issued = issue_api_key(
            key.organisation,
            name=key.name,
            expires_at=key.expires_at,
            allowed_networks=key.allowed_networks,
            scopes=form.scopes(),  # type: ignore[attr-defined]
            created_by=person(request),
            origin=origin_of(request),
            maker=maker_of(request, key.organisation),
        )
        request.issued = issued  # type: ignore[attr-defined]
        return issued.api_key

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        issued: IssuedApiKey = request.issued  # type: ignore[attr-defined]
        return self.redirect_to_secret(request, *issued)

    def has_rotate_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        return object_id is not None and bool(self.has_end_permission(request, object_id))

    @action(
        description="Rotate secret",
        permissions=["rotate"],
        variant=ActionVariant.WARNING,
        icon="sync",
    )
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        response: HttpResponse = self.ask_and_rotate(request, object_id)
        return response

    def rotate_row(
        self, request: HttpRequest, row: ApiKey, overlap_seconds: int
    ) -> tuple[ApiKey, str]:
        return rotate_api_key(
            row,
            overlap_seconds=overlap_seconds,
            origin=origin_of(request),
            by=person(request),
            maker=maker_of(request, row.organisation),
        )

    def is_rotatable(self, row: ApiKey) -> bool:
        return row.revoked_at is None

    def issued_context(self, request: HttpRequest, row: ApiKey, secret: str) -> dict[str, object]:
        return {
            "api_key": row,
            "secret": secret,
            "commands": commands_of(row, secret),
            "previous_until": row.previous_good_until,
            "done": page_of(row),
        }


@dataclass(frozen=True, slots=True)
class ApiKeyCommands:
    """Shell commands that show how to use an API key."""

    session: str
    """Opens a session and prints the response."""
    query: str
    """Opens a session, stores its token and sends a query."""


def commands_of(api_key: ApiKey, secret: str = _SECRET_PLACEHOLDER) -> ApiKeyCommands:
    login = {"uid": api_key.key, "password": secret, "credential": "ApiKey"}
    session = curl(f"{settings.PUBLIC_URL}/session", *json_body(login))
    query = curl(f"{settings.PUBLIC_URL}/admin/graphql", *json_body({"query": _QUERY}))
    # Unlike jq, sed is available on every POSIX system.
    token = "TOKEN=$(" + session + " \\\n  | sed -n 's/.*\"\\(mhx_[0-9A-Za-z]*\\)\".*/\\1/p')"
    return ApiKeyCommands(session, f'{token}\n\n{query} \\\n  -H "Authorization: Bearer $TOKEN"')


@admin.register(ApiKey)
class ApiKeyAdmin(PageContext, ApiKeyIssuing, EndingMixin, TenantModelAdmin):
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
    list_select_related = ("organisation", "approved_by")
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
    view_scope = Scope.READ_KEYS
    change_scope = Scope.WRITE_KEYS
    page_scopes = {
        "rotate": Scope.WRITE_KEYS,
        "revoke": Scope.WRITE_KEYS,
        "issued": Scope.WRITE_KEYS,
    }
    action_scopes = {"revoke_selected": Scope.WRITE_KEYS}
    proved_pages = frozenset({"add", "rotate", "issued", "revoke"})
    proved_actions = frozenset({"revoke_selected"})
    add_fieldsets = (
        (
            None,
            {
                "fields": (
                    "organisation",
                    "name",
                    "preset",
                    "chosen",
                    "expires_at",
                    "allowed_networks",
                )
            },
        ),
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
                    "shown_scopes",
                    "expires_at",
                    "shown_networks",
                )
            },
        ),
        ("History", {"fields": _HISTORY}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.annotate(role_of_approver=approver_role())

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        shown = ["key", "state", "notices", "shown_scopes", "shown_networks", *_HISTORY]
        return shown if obj is None else [*shown, "organisation", "name", "expires_at"]

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    @display(description="Created by")
    def shown_creator(self, api_key: ApiKey) -> str:
        creator = api_key.created_by
        return "" if creator is None else creator.email_known_to(api_key.organisation_id) or ""

    @display(description="Created with")
    def shown_creating_key(self, api_key: ApiKey) -> SafeString | str:
        creating = api_key.created_with
        return "" if creating is None else link_to(creating)

    @display(description="Belongs to")
    def shown_approver(self, api_key: ApiKey) -> str:
        """Who approved it as a program's login, and whose role bounds it."""
        approver = api_key.approved_by
        return "" if approver is None else approver.email_known_to(api_key.organisation_id) or ""

    @display(description="State", label=_STATE_COLOURS)
    def state(self, api_key: ApiKey) -> str:
        if api_key.revoked_at is not None:
            return REVOKED
        if api_key.has_lost_approver:
            return ENDED
        return EXPIRED if api_key.is_expired else ACTIVE

    @display(description="Notices")
    def notices(self, api_key: ApiKey) -> SafeString | str:
        """Labels for what needs attention; none for a key that is expired or revoked."""
        now = timezone.now()
        if self.state(api_key) != ACTIVE:
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

    @display(description="Scopes")
    def shown_scopes(self, api_key: ApiKey) -> str:
        held = api_key.held_scopes
        preset = preset_of(held)
        return names_of(held) if preset is None else f"{preset.title}: {names_of(held)}"

    @display(description="Allowed networks")
    def shown_networks(self, api_key: ApiKey) -> str:
        return ", ".join(api_key.allowed_networks) or "Any"

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        context = {
            **(extra_context or {}),
            "presets": PRESETS,
            "meanings": [(each, MEANINGS[each]) for each in Scope if each is not Scope.ALL],
        }
        response: HttpResponse = super().add_view(request, form_url, context)
        return response

    def page_context(self, request: HttpRequest, row: ApiKey) -> dict[str, Any]:
        return {
            "is_good": self.state(row) == ACTIVE,
            "commands": commands_of(row),
            "previous_until": row.previous_good_until,
            "rotate": action_of(row, "rotate"),
        }

    @action(description="Revoke", permissions=["end"], variant=ActionVariant.DANGER, icon="block")
    def revoke(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self.ask_and_end_one(request, object_id)

    @admin.action(description="Revoke selected API keys", permissions=["end"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse:
        return self.ask_and_end_selected(request, queryset)

    def is_live(self, row: ApiKey) -> bool:
        return row.revoked_at is None

    def ask_and_end(
        self,
        request: HttpRequest,
        rows: Iterable[ApiKey],
        back_to: str,
        question: Question | None = None,
    ) -> HttpResponse:
        rows = list(rows)
        if warning := _created_with(rows):
            question = self.end_question._replace(warning=warning)
        return super().ask_and_end(request, rows, back_to, question)

    def end_rows(self, request: HttpRequest, rows: Iterable[ApiKey]) -> list[ApiKey]:
        return revoke_api_keys(rows, origin=origin_of(request), by=person(request))


def _created_with(api_keys: Sequence[ApiKey]) -> str:
    """Says which keys these created, and whether they end too; empty for none."""
    asked = {api_key.pk for api_key in api_keys}
    bound = ApiKey.objects.all().bound_to(asked)
    others = ApiKey.objects.all().descendants_of(asked) - bound
    texts = [
        f"{what}: {_named(ids)}."
        for what, ids in [
            ("Keys that the program created end with its login", bound - asked),
            ("Keys that were created with it stay valid", others - asked),
        ]
        if ids
    ]
    return " ".join(texts)


def _named(ids: Collection[UUID]) -> str:
    names = [str(api_key) for api_key in ApiKey.objects.filter(pk__in=ids)[:_NAMED]]
    more = len(ids) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


@panel_of(Organisation, scope=Scope.READ_KEYS)
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
            Link(
                "Create API key",
                list_of(ApiKey, "add", organisation=organisation.pk),
                Scope.WRITE_KEYS,
            ),
        ),
    )
