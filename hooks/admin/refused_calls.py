"""Calls that ran nothing: a list, and a page that says what is wrong and what to do."""

from collections import Counter
from datetime import date, timedelta
from functools import partial
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from django.contrib import admin
from django.db.models import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts.admin.reach import person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.scopes import Scope
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import link_to
from core.admin.panels import PageContext
from core.http.origin import origin_of
from core.http.redaction import REDACTED, holds_secret
from hooks.flows.refused_calls import explain, replay_refused_call, secrets_of
from hooks.models import RefusalCount, RefusedCall
from hooks.models.refused_call import RefusedContent, content_of
from hooks.senders import RefusalReason, credential_headers
from jobs.admin.runs import show_started_run
from scripts_engine.admin.runs.bodies import Body, body_of
from scripts_engine.redaction import Redactor
from scripts_engine.runs.spec import Author

REASONS = {
    RefusalReason.WRONG_TOKEN.value: "Wrong token",
    RefusalReason.NETWORK_NOT_ALLOWED.value: "Network not allowed",
    RefusalReason.METHOD_NOT_ALLOWED.value: "Method not allowed",
    RefusalReason.BODY_TOO_LARGE.value: "Body too large",
    RefusalReason.NO_SECRET_SET.value: "No secret set",
    RefusalReason.SIGNATURE_MISSING.value: "Signature missing",
    RefusalReason.SIGNATURE_MALFORMED.value: "Signature malformed",
    RefusalReason.SIGNATURE_MISMATCH.value: "Signature does not match",
    RefusalReason.TIMESTAMP_TOO_OLD.value: "Signed time too old",
    RefusalReason.TIMESTAMP_TOO_NEW.value: "Signed time too new",
    RefusalReason.HANDSHAKE_REFUSED.value: "Handshake refused",
    RefusalReason.RATE_LIMITED.value: "Too many calls",
    RefusalReason.BUSY.value: "Busy",
    RefusalReason.QUEUE_FULL.value: "Queue full",
}
DAYS = 30
# Of the picture, in its own units.
BAR_WIDTH, HEIGHT = 8, 40
_LOWEST_BAR = 3
_REPLAY = Question(
    title="Replay refused call",
    consequences=(
        "Runs the script with the call as it came, if its signature matches now. The sender does "
        "not see the reply."
    ),
    button="Replay",
    variant="primary",
)
# Proves itself by a secret in clear, which may be a live one of another hook.
_SECRET_IN_BODY = frozenset({"microsoft-graph"})
_FIELDS = ("at", "why", "hook_or_script", "detail", "caller", "method", "headers_sent")

# Without what the caller sent, and from where.
_OUTLINE = ("at", "why", "hook_or_script")


@admin.register(RefusedCall)
class RefusedCallAdmin(PageContext, ReadOnlyTenantModelAdmin):
    class Media:
        css: ClassVar = {"all": ("moonhook/run.css",)}
        js = (Script("moonhook/copy.js", defer=True),)

    empty_state = EmptyState(
        "No refused calls. Calls with a wrong token, signature, network or method appear here, "
        "with what is wrong and what to do."
    )
    view_scope = Scope.READ_SCRIPTS
    page_scopes = {"replay": Scope.OPERATE_QUEUE}
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

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        in_full = self.allows(request, Scope.READ_PAYLOADS, obj)
        return _FIELDS if in_full else _OUTLINE

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        in_full = self.has_wherever_visible(request, Scope.READ_PAYLOADS)
        return self.list_display if in_full else _OUTLINE

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

    def page_context(self, request: HttpRequest, row: RefusedCall) -> dict[str, Any]:
        outline = {"title": REASONS[row.reason], "show_history": False}
        if not self.allows(request, Scope.READ_PAYLOADS, row):
            return outline
        first, *others = explain(row)
        content = content_of(row)
        hidden = Redactor(() if row.hook is None else secrets_of(row.hook))
        return {
            **outline,
            "first": first,
            "others": others,
            "content": content is not None,
            "headers": [] if content is None else shown_headers(content, hidden),
            "body": None if content is None else shown_body(row, content, hidden),
        }

    @action(description="Replay", icon="replay", permissions=["replay"])
    def replay(self, request: HttpRequest, object_id: str) -> HttpResponse:
        refused: RefusedCall = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _REPLAY, [refused])
        origin, by = origin_of(request), Author(user=person(request))
        start = partial(replay_refused_call, refused, origin=origin, by=by)
        return show_started_run(self, request, refused, start, "The call was replayed.")


def shown_headers(content: RefusedContent, hidden: Redactor) -> list[tuple[str, str]]:
    """Without the values that are secrets themselves."""
    return [
        (name, REDACTED if _is_secret(name.lower(), value, hidden) else value)
        for name, value in content.headers
    ]


def _is_secret(name: str, value: str, hidden: Redactor) -> bool:
    return name in credential_headers() or holds_secret(value) or hidden.is_hidden_in(value)


def shown_body(refused: RefusedCall, content: RefusedContent, hidden: Redactor) -> Body | None:
    """``None`` if the body is not kept, or carries a shared secret."""
    sender = "" if refused.hook is None else refused.hook.sender
    if content.body is None or sender in _SECRET_IN_BODY:
        return None
    return body_of(hidden.bytes(content.body, max(len(content.body), len(REDACTED))))


# --- In a picture: how many a day, and for which reasons ------------------------------------------


class DayBar(NamedTuple):
    x: int
    y: int
    height: int
    title: str


class Refusals(NamedTuple):
    total: int
    bars: list[DayBar]
    """One a day, the oldest first; a day without refusals has none."""
    reasons: list[tuple[str, int]]
    """In words, the most frequent first."""
    width: int = DAYS * BAR_WIDTH
    height: int = HEIGHT


def refusals_of(subject: UUID) -> Refusals:
    """The refused calls of a hook, or those of a script whose token no hook has, in 30 days."""
    first = timezone.now().date() - timedelta(days=DAYS - 1)
    rows = RefusalCount.objects.filter(subject=subject, day__gte=first)
    by_day: Counter[date] = Counter()
    by_reason: Counter[str] = Counter()
    for day, reason, count in rows.values_list("day", "reason", "count"):
        by_day[day] += count
        by_reason[REASONS[reason]] += count
    most = max(by_day.values(), default=0)
    bars = [_bar(day, (day - first).days, count, most) for day, count in sorted(by_day.items())]
    return Refusals(by_day.total(), bars, by_reason.most_common())


def _bar(day: date, number: int, count: int, most: int) -> DayBar:
    height = max(_LOWEST_BAR, round(HEIGHT * count / most))
    return DayBar(number * BAR_WIDTH, HEIGHT - height, height, f"{day}: {count:,}")
