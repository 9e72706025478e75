"""The page of background tasks, for superusers: their states and errors, and queueing again."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django_tasks import TaskResultStatus
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter

from accounts.admin.reach import SuperusersOnly, is_superuser
from accounts.flows.send_pin import count_send_to, deliver_pin
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import DANGER, INFO, PLAIN, SUCCESS, WARNING, action, display
from core.admin.links import page_of
from core.database.ids import parse_uuid
from core.errors import RateLimitedError
from core.http.redaction import redact
from jobs.models import Message
from jobs.models.message import AT_ONCE, NAMES
from jobs.queue.wake_up import MESSAGES, wake

WAITING, RETRYING, RUNNING, FAILED, DONE = "Waiting", "Retrying", "Running", "Failed", "Done"
_LABELS = {WAITING: PLAIN, RETRYING: WARNING, RUNNING: INFO, FAILED: DANGER, DONE: SUCCESS}
_STATES = {
    TaskResultStatus.RUNNING: RUNNING,
    TaskResultStatus.FAILED: FAILED,
    TaskResultStatus.SUCCESSFUL: DONE,
}
_QUEUE_AGAIN = Question(
    title="Queue again",
    consequences=(
        "The task starts over, with all its attempts. If only the confirmation of a message was "
        "lost, the message arrives twice. For a PIN code a new code is generated, which counts "
        "towards the limit of its address; the user may no longer be waiting for it."
    ),
    button="Queue again",
)


class _Described:
    """A task with its arguments, for the confirmation page."""

    _meta = Message._meta  # For the breadcrumbs.

    def __init__(self, row: Message) -> None:
        self.pk = row.pk
        self._text = f"{row}: {', '.join(map(str, row.arguments['args']))}"

    def __str__(self) -> str:
        return self._text


class TaskFilter(DropdownFilter):
    title = "task"
    parameter_name = "task"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterator[tuple[str, str]]:
        yield from NAMES.items()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(task_path=self.value()) if self.value() else queryset


@admin.register(Message)
class BackgroundTaskAdmin(SuperusersOnly, ModelAdmin):
    list_display = (
        "task_in_words",
        "state",
        "enqueued_at",
        "attempts",
        "next_try",
        "last_error",
        "worker",
    )
    list_display_links = ("task_in_words",)
    list_filter = (("status", ChoicesDropdownFilter), TaskFilter)
    list_filter_submit = True
    list_per_page = 50
    sortable_by = ("enqueued_at",)
    ordering = ("-enqueued_at",)
    actions = ("queue_selected_again",)
    actions_detail = ("queue_again",)
    fields = (
        "task_in_words",
        "state",
        "arguments",
        "attempts",
        "next_try",
        "last_error",
        "traceback_in_full",
        "workers",
        "enqueued_at",
        "started_at",
        "finished_at",
        "id",
        "task_path",
    )
    readonly_fields = fields

    @display(description="Task")
    def task_in_words(self, row: Any) -> str:
        return str(row)

    @display(description="State", label=_LABELS)
    def state(self, row: Any) -> str:
        return _STATES.get(row.status) or (RETRYING if row.worker_ids else WAITING)

    @display(description="Attempts")
    def attempts(self, row: Any) -> int:
        return len(row.worker_ids)

    @display(description="Next attempt")
    def next_try(self, row: Any) -> Any:
        """Return when the next attempt starts; empty if there is none."""
        if row.status != TaskResultStatus.READY:
            return ""
        return "Now" if row.due_at <= timezone.now() else row.due_at

    @display(description="Last error")
    def last_error(self, row: Any) -> str:
        lines = row.traceback.strip().splitlines()
        return redact(lines[-1].rpartition("Error: ")[2])[:200] if lines else ""

    @display(description="Worker")
    def worker(self, row: Any) -> str:
        return row.worker_ids[-1] if row.worker_ids else ""

    @display(description="Workers, by attempt")
    def workers(self, row: Any) -> str:
        return ", ".join(row.worker_ids)

    @display(description="Arguments")
    def arguments(self, row: Any) -> str:
        """Show the arguments: addresses and ids, never secrets."""
        values = [*row.arguments["args"], *row.arguments["kwargs"].values()]
        return redact(", ".join(map(str, values)))

    @display(description="Traceback")
    def traceback_in_full(self, row: Any) -> SafeString | str:
        if not row.traceback:
            return ""
        return format_html('<pre class="mh-pre">{}</pre>', redact(row.traceback))

    @action(description="Queue again", permissions=["queue_again"], icon="replay")
    def queue_again(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        if not is_confirmed(request):
            return ask(self, request, _QUEUE_AGAIN, [_Described(row)])
        self._queue_again(request, row)
        return redirect(page_of(row))

    @admin.action(description="Queue again", permissions=["view"])
    def queue_selected_again(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        if not is_confirmed(request):
            return ask(self, request, _QUEUE_AGAIN, map(_Described, queryset))
        for row in queryset:
            self._queue_again(request, row)
        return None

    def _queue_again(self, request: HttpRequest, row: Message) -> None:
        try:
            is_queued = queue_again(row)
        except RateLimitedError as error:
            text = f"{row}: the address has reached its limit of codes; {error}."
            self.message_user(request, text, messages.ERROR)
            return
        if not is_queued:
            text = f"{row}: only failed tasks can be queued again."
            self.message_user(request, text, messages.WARNING)
            return
        self.log_change(request, row, "Queued again.")
        self.message_user(request, f"{row} is queued again.", messages.SUCCESS)

    def has_queue_again_permission(
        self, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        row = None if object_id is None else self.get_object(request, object_id)
        has_failed = row is not None and row.status == TaskResultStatus.FAILED
        return is_superuser(request) and has_failed


def queue_again(row: Message) -> bool:
    """Start a failed task over, with all its attempts; return False if it has not failed.

    A PIN code is a new request with a new code, and counts towards the limits of its address.
    Raises ``RateLimitedError``.
    """
    if row.status != TaskResultStatus.FAILED:
        return False
    arguments = row.arguments
    if row.task_path == deliver_pin.module_path:
        email, channel, send_via, _ = arguments["args"]
        count_send_to(email, parse_uuid(arguments["kwargs"].get("device", "")))
        arguments = {**arguments, "args": [email, channel, send_via, timezone.now().isoformat()]}
    is_queued = (
        Message.objects.failed()
        .filter(pk=row.pk)
        .update(
            status=TaskResultStatus.READY,
            arguments=arguments,
            enqueued_at=timezone.now(),
            due_at=AT_ONCE,
            started_at=None,
            finished_at=None,
            worker_ids=[],
        )
    )
    wake(MESSAGES)
    return is_queued == 1
