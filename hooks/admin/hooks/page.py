"""Hook pages: create with the call token shown once, rotate, enable, disable, delete."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import BooleanRadioFilter
from unfold.enums import ActionVariant

from accounts.admin.reach import person
from accounts.admin.rotating_secrets import RotatingSecretAdmin
from accounts.admin.tenancy import TenantModelAdmin
from accounts.models import Organisation
from accounts.scopes import Scope
from core.admin import shown_once
from core.admin.confirmation import Question, ask, is_confirmed, next_address
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.issuing import curl, json_body
from core.admin.links import action_of, page_of
from core.admin.panels import PageContext
from core.errors import NotFoundError
from core.http.origin import origin_of
from hooks.admin.hooks.creation import NewHookForm, first_call_context
from hooks.admin.hooks.day import day_of, newest_calls
from hooks.admin.hooks.limits import limits_context
from hooks.admin.hooks.listed import ListedHooks
from hooks.admin.hooks.pin import PinPage, pin_context
from hooks.admin.hooks.sender import NOBODY, sender_context
from hooks.admin.scripts_and_runs import pin_label
from hooks.flows.hooks import (
    delete_hooks,
    issue_hook,
    rotate_call_token,
    shown_again,
    switch_hooks,
    update_hook,
)
from hooks.flows.send_test_event import send_test_event
from hooks.flows.senders import IssuedWithSender, issue_hook_with_sender
from hooks.models import Hook
from hooks.rule_values import preset_of
from hooks.rules import rules_in_force
from jobs.admin.runs import show_started_run
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.admin.panels import enabled_label
from scripts_engine.admin.scripts.live import live_of

_DISABLE = Question(
    title="Disable hook",
    consequences=(
        "Calls return 404 from now on, and nothing runs. The token stays the same: "
        "once enabled again, the hook works as before."
    ),
    button="Disable",
)
_ENABLE = Question(
    title="Enable hook",
    consequences="Anyone with its URL or call token can run the script again.",
    button="Enable",
)


class SwitchableHooks(TenantModelAdmin):
    """Adds the enable and disable actions; each button shows only when it applies."""

    def has_disable_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return self._has_state(request, object_id, is_enabled=True)

    def has_enable_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        return self._has_state(request, object_id, is_enabled=False)

    @action(description="Disable", icon="block", permissions=["disable"])
    def disable(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._ask_and_switch(request, object_id, _DISABLE, is_enabled=False)

    @action(description="Enable", icon="check_circle", permissions=["enable"])
    def enable(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._ask_and_switch(request, object_id, _ENABLE, is_enabled=True)

    @admin.action(description="Enable selected hooks", permissions=["change"])
    def enable_selected(self, request: HttpRequest, queryset: QuerySet[Hook]) -> None:
        self._switch(request, queryset, is_enabled=True)

    @admin.action(description="Disable selected hooks", permissions=["change"])
    def disable_selected(self, request: HttpRequest, queryset: QuerySet[Hook]) -> None:
        self._switch(request, queryset, is_enabled=False)

    def _has_state(self, request: HttpRequest, object_id: str | None, *, is_enabled: bool) -> bool:
        hook: Any = self.get_object(request, object_id) if object_id else None
        return hook is not None and hook.is_enabled == is_enabled

    def _ask_and_switch(
        self, request: HttpRequest, object_id: str, question: Question, *, is_enabled: bool
    ) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, question, [hook])
        self._switch(request, [hook], is_enabled=is_enabled)
        return redirect(next_address(request, page_of(hook)))

    def _switch(
        self, request: HttpRequest, hooks: QuerySet[Hook] | list[Hook], *, is_enabled: bool
    ) -> None:
        done = "Enabled" if is_enabled else "Disabled"
        rows = list(hooks)
        switch_hooks(rows, is_enabled=is_enabled, origin=origin_of(request))
        for hook in rows:
            self.log_change(request, hook, f"{done}.")
        subject = str(rows[0]) if len(rows) == 1 else f"{len(rows)} hooks"
        self.message_user(request, f"{done} {subject}.", messages.SUCCESS)


_SHOW_URL = Question(
    title="Show the URL",
    consequences=(
        "The page shows the hook's URL with its call token, which is kept encrypted because the "
        "sender signs its calls. The audit log records it."
    ),
    button="Show",
)
# A test event runs the script as well.
_OF_TEST_EVENTS = (Scope.WRITE_HOOKS, Scope.RUN_SCRIPTS)
_TEST_EVENT = Question(
    title="Send a test event",
    consequences=(
        "The script runs for an event as the hook's sender sends it, signed, and checked like any "
        "call; without a sender, for a small JSON object. Its effects are real. The event does "
        "not count as a call of the sender."
    ),
    button="Send",
)
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
        "Undoing its release brings it back. To stop the hook for a while, disable it instead."
    ),
    button="Delete",
)

_READ_ONLY = ("hook_id", "created_at", "previous_token")

_TOKEN_PLACEHOLDER = "<call-token>"  # noqa: S105  (not a token)
_EXAMPLE_PAYLOAD = {"hello": "world"}


@admin.register(Hook)
class HookAdmin(
    PageContext,
    RotatingSecretAdmin,
    ListedHooks,
    PinPage,
    SwitchableHooks,
    DeletedByFlowModelAdmin,
):
    empty_state = EmptyState(
        "A hook is a URL that runs one script when it is called. Create one and give its URL "
        "to the caller.",
        "Create hook",
        "admin:hooks_hook_add",
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

    add_form_template = "admin/new_hook.html"
    refusals = (ValidationError, NotFoundError)
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
    list_display = (
        "named",
        "script",
        "last_call",
        "calls_of_day",
        "runs",
        "organisation",
        "is_enabled",
        "created_at",
    )
    list_filter = (
        ("script", ScopedAutocompleteFilter),
        ("is_enabled", BooleanRadioFilter),
    )
    sortable_by = ("script", "organisation", "is_enabled", "created_at")
    list_select_related = ("script__organisation", "pinned_version")
    search_fields = ("name", "script__name")
    search_help_text = "Hook or script name"
    autocomplete_fields = ("script",)
    actions = ("enable_selected", "disable_selected", "delete_selected_by_flow")
    actions_detail = ("send_test_event", "show_url", "rotate", "disable", "enable")
    view_scope = Scope.READ_SCRIPTS
    change_scope = Scope.WRITE_HOOKS
    page_scopes = {
        **dict.fromkeys(
            (
                "rotate",
                "disable",
                "enable",
                "issued",
                "limits",
                "pin",
                "sender",
                "secret",
                "end_secret",
                "expect",
                "send_test_event",
                "show_url",
            ),
            Scope.WRITE_HOOKS,
        ),
        # Its text may say what a caller sent.
        "newest_call": Scope.READ_PAYLOADS,
    }
    action_scopes = dict.fromkeys(
        ("enable_selected", "disable_selected", "delete_selected_by_flow"), Scope.WRITE_HOOKS
    )
    proved_pages = frozenset(
        {
            "add",
            "rotate",
            "show_url",
            "issued",
            "sender",
            "secret",
            "end_secret",
            "expect",
            # It shows the signed URL, which may hold the call token.
            "limits",
        }
    )
    add_fieldsets = ((None, {"fields": ("script", "name")}),)
    fieldsets = (
        (None, {"fields": ("script", "name", "is_enabled")}),
        (None, {"fields": _READ_ONLY}),
    )

    def delete_by_flow(
        self, request: HttpRequest, organisation: Organisation, rows: Sequence[Hook]
    ) -> None:
        delete_hooks(rows, origin=origin_of(request))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        hooks: Any = super().get_queryset(request)
        rows: QuerySet[Any] = hooks.existing().select_related(
            "script__organisation", "script__current_version__script", "pinned_version"
        )
        return rows

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [*_READ_ONLY] if obj is None else [*_READ_ONLY, "script"]

    @display(description="Organisation", ordering="script__organisation")
    def organisation(self, hook: Hook) -> str:
        return hook.organisation.name

    @display(description="Runs")
    def runs(self, hook: Hook) -> SafeString | str:
        return pin_label(hook)

    @display(description="HookID")
    def hook_id(self, hook: Hook) -> str:
        return str(hook.pk)

    @display(description="Previous call token")
    def previous_token(self, hook: Hook) -> str:
        until = hook.previous_good_until
        if until is not None:
            return f"Valid until {until:%Y-%m-%d %H:%M} UTC"
        return "No longer valid" if hook.previous_digest else "Not set"

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """None beside the title: the page's own menu has them."""
        return []

    def menu_of(self, request: HttpRequest, hook: Hook) -> list[tuple[str, str]]:
        """Titles and addresses."""
        if not self.may_change(request, hook):
            return []
        switch = ("Disable", "disable") if hook.is_enabled else ("Enable", "enable")
        shown = (("Show the URL", "show_url"),) if hook.call_token_ciphertext is not None else ()
        actions = (*shown, ("Rotate call token", "rotate"), switch, ("Delete", "delete"))
        return [(title, action_of(hook, name)) for title, name in actions]

    def page_context(self, request: HttpRequest, row: Hook) -> dict[str, Any]:
        return {
            "menu": self.menu_of(request, row),
            "is_token_kept": row.call_token_ciphertext is not None,
            "needs_rotation": row.needs_rotation,
            "test_address": action_of(row, "send_test_event")
            if self.may_send_test_event(request, row)
            else "",
            "enabled": enabled_label(row.is_enabled),
            "day": day_of(row),
            "newest_calls": newest_calls(row),
            "newest_call_address": action_of(row, "newest_call"),
            "live": live_of(row.script),
            "script_page": page_of(row.script),
            "calls": calls_of(row),
            "hook_id": str(row.pk),
            "script": row.script,
            "is_callable": row.is_callable,
            "previous_until": row.previous_good_until,
            "rotate": action_of(row, "rotate"),
            **sender_context(row, with_addresses=self.allows(request, Scope.READ_PAYLOADS, row)),
            **limits_context(row),
            **pin_context(row),
        }

    def save_by_flow(self, request: HttpRequest, form: forms.ModelForm[Hook], change: bool) -> Hook:
        hook, origin = form.instance, origin_of(request)
        if change:
            return update_hook(hook, origin=origin, **form.cleaned_data)
        sender = form.cleaned_data["sender"]
        if sender == NOBODY:
            unsigned = issue_hook(hook.script, name=hook.name, origin=origin)
            issued = IssuedWithSender(*unsigned, signing_secret=None)
        else:
            issued = issue_hook_with_sender(
                hook.script,
                name=hook.name,
                sender=sender,
                hmac=form.sender_options(),  # type: ignore[attr-defined]
                origin=origin,
                by=person(request),
            )
        request.issued = issued  # type: ignore[attr-defined]
        return issued.hook

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is None:
            kwargs["form"] = NewHookForm
        return super().get_form(request, obj, change=change, **kwargs)

    def response_add(
        self, request: HttpRequest, obj: Hook, post_url_continue: str | None = None
    ) -> HttpResponse:
        issued: IssuedWithSender = request.issued  # type: ignore[attr-defined]
        if issued.signing_secret is not None:
            shown_once.keep(request, _signing_secret_of(issued.hook), issued.signing_secret)
        return self.redirect_to_secret(request, issued.hook, issued.call_token)

    def may_send_test_event(self, request: HttpRequest, hook: Hook) -> bool:
        return hook.is_callable and all(
            self.allows(request, scope, hook) for scope in _OF_TEST_EVENTS
        )

    @action(
        description="Send a test event",
        icon="outgoing_mail",
    )
    def send_test_event(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        for scope in _OF_TEST_EVENTS:
            self.require(request, scope, object_id)
        if not is_confirmed(request):
            return ask(self, request, _TEST_EVENT, [hook])
        origin, by = origin_of(request), person(request)
        start = partial(send_test_event, hook, origin=origin, by=by)
        return show_started_run(self, request, hook, start, "The test event was sent.")

    @action(description="Show the URL", icon="visibility")
    def show_url(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _SHOW_URL, [hook])
        issued = shown_again(hook, origin=origin_of(request), by=person(request))
        if issued is None:
            self.message_user(request, "The call token of this hook is not kept.", messages.ERROR)
            return redirect(page_of(hook))
        context = self.issued_context(request, *issued)
        response: HttpResponse = self._page(
            request, hook, self.issued_template, {"title": "URL of the hook", **context}
        )
        return response

    @action(description="Rotate call token", icon="sync", variant=ActionVariant.WARNING)
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        response: HttpResponse = self.ask_and_rotate(request, object_id)
        return response

    def rotate_row(self, request: HttpRequest, row: Hook, overlap_seconds: int) -> tuple[Hook, str]:
        return rotate_call_token(
            row, overlap_seconds=overlap_seconds, origin=origin_of(request), by=person(request)
        )

    def issued_context(self, request: HttpRequest, row: Hook, secret: str) -> dict[str, object]:
        signing_secret = shown_once.take(request, _signing_secret_of(row))
        return {
            **first_call_context(row, row.url_with(secret), signing_secret),
            "can": {"read_payloads": self.allows(request, Scope.READ_PAYLOADS, row)},
            "hook_id": str(row.pk),
            "call_token": secret,
            "is_token_kept": row.call_token_ciphertext is not None,
            "calls": calls_of(row, secret),
            "previous_until": row.previous_good_until,
            "done": page_of(row),
            "sender_address": action_of(row, "sender"),
            "script": row.script,
            "script_page": page_of(row.script),
        }


def _signing_secret_of(hook: Hook) -> str:
    """The name under which the secret is kept that was made together with the call token."""
    return f"{hook.secret_name}:signing-secret"


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
