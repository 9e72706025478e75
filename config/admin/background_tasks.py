"""The page of background tasks, for superusers: their states and errors, and queueing again."""

from collections.abc import Callable, Iterator
from typing import Any

import django_tasks_db.admin  # noqa: F401  (registers the page that this one replaces)
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django_tasks import TaskResultStatus
from django_tasks_db.models import DBTaskResult, get_date_max
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import ChoicesDropdownFilter, DropdownFilter

from accounts import tasks
from accounts.admin.reach import SuperusersOnly, is_superuser
from accounts.flows.request_pin import count_send_to
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import DANGER, INFO, PLAIN, SUCCESS, WARNING, action, display
from core.admin.links import page_of
from core.errors import RateLimitedError
from core.http.redaction import redact

NAMES = {
    "accounts.tasks.deliver_pin": "PIN code requested",
    "accounts.tasks.deliver_pin_over": "PIN code to deliver",
    "accounts.tasks.send_new_device_notice": "New device notice",
    "accounts.tasks.send_change_notice": "Notice of a changed account",
    "accounts.tasks.send_invitation": "Invitation e-mail",
    "accounts.tasks.offer_password_reset": "Password reset requested",
    "accounts.tasks.send_password_link": "Password link e-mail",
    "accounts.tasks.warn_of_key": "Key expiry warning",
    "scripts_engine.tasks.tell_of_failure": "Failing script e-mail",
}

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
    """A task with a readable text for the confirmation page; the library's row has none."""

    _meta = DBTaskResult._meta  # For the breadcrumbs.

    def __init__(self, row: DBTaskResult) -> None:
        self.pk = row.pk
        self._text = f"{name_of(row.task_path)}: {', '.join(map(str, row.args_kwargs['args']))}"

    def __str__(self) -> str:
        return self._text


class TaskFilter(DropdownFilter):
    title = "task"
    parameter_name = "task"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterator[tuple[str, str]]:
        yield from NAMES.items()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(task_path=self.value()) if self.value() else queryset


admin.site.unregister(DBTaskResult)
# The library's names would show in messages, titles and the history. A proxy model would have an
# address and a migration of its own.
DBTaskResult._meta.verbose_name = "background task"
DBTaskResult._meta.verbose_name_plural = "background tasks"
DBTaskResult.__str__ = lambda row: name_of(row.task_path)  # type: ignore[method-assign, attr-defined]


@admin.register(DBTaskResult)
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
        return name_of(row.task_path)

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
        is_due = row.run_after == get_date_max() or row.run_after <= timezone.now()
        return "Now" if is_due else row.run_after

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
        values = [*row.args_kwargs["args"], *row.args_kwargs["kwargs"].values()]
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

    def _queue_again(self, request: HttpRequest, row: DBTaskResult) -> None:
        name = name_of(row.task_path)
        try:
            is_queued = queue_again(row)
        except RateLimitedError as error:
            text = f"{name}: the address has reached its limit of codes; {error}."
            self.message_user(request, text, messages.ERROR)
            return
        if not is_queued:
            text = f"{name}: only failed tasks can be queued again."
            self.message_user(request, text, messages.WARNING)
            return
        self.log_change(request, row, "Queued again.")
        self.message_user(request, f"{name} is queued again.", messages.SUCCESS)

    def has_queue_again_permission(
        self, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        row = None if object_id is None else self.get_object(request, object_id)
        has_failed = row is not None and row.status == TaskResultStatus.FAILED
        return is_superuser(request) and has_failed


def name_of(task_path: str) -> str:
    """Return the task's name, or that of its function if the task no longer exists."""
    return NAMES.get(task_path) or task_path.rpartition(".")[2].replace("_", " ").capitalize()


def queue_again(row: DBTaskResult) -> bool:
    """Start a failed task over, with all its attempts; return False if it has not failed.

    A PIN code is a new request with a new code, and counts towards the limits of its address.
    Raises ``RateLimitedError``.
    """
    if row.status != TaskResultStatus.FAILED:
        return False
    renew = _RENEWERS.get(row.task_path, _unchanged)
    now = timezone.now()
    failed = DBTaskResult.objects.failed().filter(pk=row.pk)
    return (
        failed.update(
            status=TaskResultStatus.READY,
            args_kwargs={**row.args_kwargs, "args": renew(row.args_kwargs["args"])},
            enqueued_at=now,
            started_at=None,
            finished_at=None,
            run_after=get_date_max(),
            worker_ids=[],
        )
        == 1
    )


def _unchanged(arguments: list[Any]) -> list[Any]:
    return arguments


def _request_again(arguments: list[Any]) -> list[Any]:
    count_send_to(arguments[0])
    return arguments


def _deliver_again(arguments: list[Any]) -> list[Any]:
    email, channel, _ = arguments
    count_send_to(email)
    return [email, channel, timezone.now().isoformat()]


_RENEWERS: dict[str, Callable[[list[Any]], list[Any]]] = {
    tasks.deliver_pin.module_path: _request_again,
    tasks.deliver_pin_over.module_path: _deliver_again,
}
