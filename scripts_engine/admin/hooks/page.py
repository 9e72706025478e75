"""Hook pages: create with the call token shown once, rotate, enable, disable, delete."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import BooleanRadioFilter
from unfold.enums import ActionVariant

from accounts.admin.reach import person
from accounts.admin.rotating_secrets import RotatingSecretAdmin
from core.admin.confirmation import Question
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.issuing import curl, json_body
from core.admin.links import action_of, link, page_of
from core.http.origin import origin_of
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.admin.hooks.limits import LimitsPage, limits_context
from scripts_engine.admin.hooks.sender import sender_context
from scripts_engine.admin.hooks.switch import SwitchableHooks
from scripts_engine.flows.call_rules import rules_in_force
from scripts_engine.flows.hooks import (
    IssuedHook,
    delete_hook,
    issue_hook,
    rotate_call_token,
    update_hook,
)
from scripts_engine.flows.rule_values import preset_of
from scripts_engine.models import Hook

_ROTATE = Question(
    title="Rotate call token",
    consequences=(
        "The hook gets a new call token and a new URL, shown once on the next page. "
        "Update the callers before the old token expires."
    ),
    button="Rotate",
)
_DELETE = Question(
    title="Delete hook",
    consequences=(
        "The hook stops immediately: calls return 404. Its runs stay readable. "
        "This cannot be undone. To stop the hook for a while, disable it instead."
    ),
    button="Delete",
)

_READ_ONLY = ("hook_id", "created_at", "last_called", "previous_token")

_TOKEN_PLACEHOLDER = "<call-token>"  # noqa: S105  (not a token)
_EXAMPLE_PAYLOAD = {"hello": "world"}


@admin.register(Hook)
class HookAdmin(RotatingSecretAdmin, LimitsPage, SwitchableHooks, DeletedByFlowModelAdmin):
    empty_state = EmptyState(
        "A hook is a URL that runs one script when it is called. Create one and give its URL "
        "to the caller.",
        "Create hook",
        "admin:scripts_engine_hook_add",
    )
    help_texts = {
        "script": "Runs when the hook is called. To run another script, create another hook.",
        "name": (
            "Names the caller, for example “shop orders”. Use one hook per caller. "
            "Not part of the URL."
        ),
        "is_enabled": "When off, calls return 404 and nothing runs.",
    }

    class Media:
        js = (
            Script("moonhook/copy.js", defer=True),
            Script("moonhook/newest_call.js", defer=True),
        )

    issue_button = "Create hook"
    credential = "call token"
    issued_title = "Hook created"
    issued_template = "admin/issued_hook.html"
    rotate_question = _ROTATE
    overlap_label = "Keep old token valid for"
    change_form_outer_before_template = "admin/hook_sender_card.html"
    change_form_outer_after_template = "admin/hook_page.html"
    organisation_path = "script__organisation"
    delete_question = _DELETE
    list_display = ("__str__", "script", "organisation", "is_enabled", "created_at")
    list_filter = (
        ("script", ScopedAutocompleteFilter),
        ("is_enabled", BooleanRadioFilter),
    )
    sortable_by = ("script", "organisation", "is_enabled", "created_at")
    list_select_related = ("script__organisation",)
    search_fields = ("name", "script__name")
    search_help_text = "Hook or script name"
    autocomplete_fields = ("script",)
    actions = ("enable_selected", "disable_selected", "delete_selected_by_flow")
    actions_detail = ("rotate", "disable", "enable")
    add_fieldsets = ((None, {"fields": ("script", "name")}),)
    fieldsets = (
        (None, {"fields": ("script", "name", "is_enabled")}),
        (None, {"fields": _READ_ONLY}),
    )

    def delete_by_flow(self, request: HttpRequest, obj: Hook) -> None:
        delete_hook(obj, origin=origin_of(request))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        hooks: Any = super().get_queryset(request)
        rows: QuerySet[Any] = hooks.existing().select_related("script__organisation")
        return rows

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [*_READ_ONLY] if obj is None else [*_READ_ONLY, "script"]

    @display(description="Organisation", ordering="script__organisation")
    def organisation(self, hook: Hook) -> str:
        return hook.organisation.name

    @display(description="HookID")
    def hook_id(self, hook: Hook) -> str:
        return str(hook.pk)

    @display(description="Last called")
    def last_called(self, hook: Hook) -> SafeString | str:
        run = hook.runs.only("id", "started_at").first()
        if run is None:
            # Older runs may have been deleted.
            return "No recorded calls"
        return link(page_of(run), date_format(run.started_at, "DATETIME_FORMAT"))

    @display(description="Previous call token")
    def previous_token(self, hook: Hook) -> str:
        until = hook.previous_good_until
        if until is not None:
            return f"Valid until {until:%Y-%m-%d %H:%M} UTC"
        return "No longer valid" if hook.previous_digest else "Not set"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        context = {
            **(extra_context or {}),
            "calls": calls_of(hook),
            "hook_id": str(hook.pk),
            "script": hook.script,
            "is_callable": hook.is_callable,
            "previous_until": hook.previous_good_until,
            "rotate": action_of(hook, "rotate"),
            **sender_context(hook),
            **limits_context(hook),
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    def save_model(
        self, request: HttpRequest, obj: Hook, form: forms.ModelForm[Hook], change: bool
    ) -> None:
        if change:
            update_hook(obj, origin=origin_of(request), **form.cleaned_data)
            return
        issued = issue_hook(
            obj.script, name=obj.name, origin=origin_of(request), by=person(request)
        )
        obj.pk = issued.hook.pk
        obj.refresh_from_db()
        request.issued = issued  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: Hook, post_url_continue: str | None = None
    ) -> HttpResponse:
        issued: IssuedHook = request.issued  # type: ignore[attr-defined]
        return self.redirect_to_secret(request, *issued)

    @action(description="Rotate call token", icon="sync", variant=ActionVariant.WARNING)
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        response: HttpResponse = self.ask_and_rotate(request, object_id)
        return response

    def rotate_row(self, request: HttpRequest, row: Hook, overlap_seconds: int) -> tuple[Hook, str]:
        return rotate_call_token(
            row, overlap_seconds=overlap_seconds, origin=origin_of(request), by=person(request)
        )

    def issued_context(self, row: Hook, secret: str) -> dict[str, object]:
        return {
            "hook_id": str(row.pk),
            "call_token": secret,
            "calls": calls_of(row, secret),
            "previous_until": row.previous_good_until,
            "done": page_of(row),
            "sender_address": action_of(row, "sender"),
            "has_sender": bool(row.sender),
            "script": row.script,
            "script_page": page_of(row.script),
        }


@dataclass(frozen=True, slots=True)
class Calls:
    """A hook's two URLs and a curl command for each way to call it.

    A command that the hook would refuse is empty: of a method that it does not run for, and all of
    them if ``signed_by`` names a sender that has to sign.
    """

    methods: str
    signed_by: str
    url: str
    post: str
    get: str
    secure_url: str
    secure_post: str


def calls_of(hook: Hook, call_token: str = _TOKEN_PLACEHOLDER) -> Calls:
    url, methods, preset = hook.url_with(call_token), rules_in_force(hook).methods, preset_of(hook)
    signed_by = preset.title if preset is not None and preset.takes_secret else ""
    payload = json_body(_EXAMPLE_PAYLOAD)
    credentials = ("-u", f"{hook.pk}:{call_token}")
    unsigned = () if signed_by else methods
    return Calls(
        methods=" and ".join(methods),
        signed_by=signed_by,
        url=url,
        post=curl(url, *payload) if "POST" in unsigned else "",
        get=curl(f"{url}?hello=world") if "GET" in unsigned else "",
        secure_url=hook.secure_url,
        secure_post=curl(hook.secure_url, credentials, *payload) if "POST" in unsigned else "",
    )
