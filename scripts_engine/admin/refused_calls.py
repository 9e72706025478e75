"""Calls that ran nothing: a list, and a page that says what is wrong and what to do."""

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts.admin.reach import person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import link_to, page_of
from core.http.origin import origin_of
from core.http.redaction import REDACTED, holds_secret
from scripts_engine.admin.refusals import REASONS
from scripts_engine.admin.runs.bodies import Body, body_of
from scripts_engine.flows.author import Author
from scripts_engine.flows.call_notes.content import RefusedContent, content_of
from scripts_engine.flows.refused_calls import explain, replay_refused_call, secrets_of
from scripts_engine.models import RefusedCall
from scripts_engine.not_run import NOT_RUN_ERRORS, why_not_run
from scripts_engine.redaction import Redactor

_REPLAY = Question(
    title="Replay refused call",
    consequences=(
        "Runs the script with the call as it came, if its signature matches now. The sender does "
        "not see the reply."
    ),
    button="Replay",
)
# Senders that prove themselves by a secret in clear, which may be a live one of another hook.
_SECRET_HEADERS = frozenset({"x-gitlab-token", "x-hook-secret"})
_SECRET_IN_BODY = frozenset({"microsoft-graph"})
_FIELDS = ("at", "why", "hook_or_script", "detail", "caller", "method", "headers_sent")


@admin.register(RefusedCall)
class RefusedCallAdmin(ReadOnlyTenantModelAdmin):
    class Media:
        css: ClassVar = {"all": ("moonhook/run.css",)}
        js = (Script("moonhook/copy.js", defer=True),)

    empty_state = EmptyState(
        "No call was refused. Calls with a wrong token, signature, network or method appear here, "
        "with what is wrong and what to do."
    )
    change_form_outer_before_template = "admin/refused_call.html"
    change_form_outer_after_template = ""
    list_display = ("at", "why", "hook_or_script", "caller", "detail")
    list_display_links = ("at",)
    list_filter = (
        ("hook", ScopedAutocompleteFilter),
        ("script", ScopedAutocompleteFilter),
        ("reason", ChoicesDropdownFilter),
    )
    list_select_related = ("hook", "script")
    sortable_by = ()
    fields = _FIELDS
    readonly_fields = _FIELDS
    actions = None
    actions_detail = ("replay",)

    def has_replay_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        refused: Any = self.get_object(request, object_id) if object_id else None
        return refused is not None and refused.hook_id is not None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.select_related("hook__script", "script")

    @display(description="Reason")
    def why(self, refused: RefusedCall) -> str:
        return REASONS[refused.reason]

    @display(description="Hook")
    def hook_or_script(self, refused: RefusedCall) -> str:
        return link_to(refused.script if refused.hook is None else refused.hook)

    @display(description="From")
    def caller(self, refused: RefusedCall) -> str:
        return refused.client_address or "nowhere"

    @display(description="Headers")
    def headers_sent(self, refused: RefusedCall) -> str:
        return ", ".join(refused.header_names)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        refused: RefusedCall = self.get_or_404(request, object_id)
        first, *others = explain(refused)
        content = content_of(refused)
        hidden = Redactor(() if refused.hook is None else secrets_of(refused.hook))
        context = {
            **(extra_context or {}),
            "title": REASONS[refused.reason],
            "first": first,
            "others": others,
            "show_history": False,
            "content": content is not None,
            "headers": [] if content is None else shown_headers(content, hidden),
            "body": None if content is None else shown_body(refused, content, hidden),
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    @action(description="Replay", icon="replay", permissions=["replay"])
    def replay(self, request: HttpRequest, object_id: str) -> HttpResponse:
        refused: RefusedCall = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _REPLAY, [refused])
        try:
            run = replay_refused_call(
                refused, origin=origin_of(request), by=Author(user=person(request))
            )
        except ValidationError as error:
            self.message_user(request, " ".join(error.messages), messages.ERROR)
        except NOT_RUN_ERRORS as error:
            self.message_user(request, why_not_run(error).text, messages.ERROR)
        else:
            self.message_user(request, "The call was replayed.", messages.SUCCESS)
            return redirect(page_of(run))
        return redirect(page_of(refused))


def shown_headers(content: RefusedContent, hidden: Redactor) -> list[tuple[str, str]]:
    """Without the values that are secrets themselves."""
    return [
        (name, REDACTED if _is_secret(name.lower(), value, hidden) else value)
        for name, value in content.headers
    ]


def _is_secret(name: str, value: str, hidden: Redactor) -> bool:
    return name in _SECRET_HEADERS or holds_secret(value) or hidden.is_hidden_in(value)


def shown_body(refused: RefusedCall, content: RefusedContent, hidden: Redactor) -> Body | None:
    """``None`` if the body is not kept, or carries a shared secret."""
    sender = "" if refused.hook is None else refused.hook.sender
    if content.body is None or sender in _SECRET_IN_BODY:
        return None
    return body_of(hidden.bytes(content.body, max(len(content.body), len(REDACTED))))
