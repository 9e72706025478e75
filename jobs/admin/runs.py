"""Pages of runs with what the queue adds: cancel, replay, attempts, and how far replays are."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_GET, require_POST

from accounts.admin.reach import person
from accounts.scopes import Scope
from core.admin.links import action_of, list_of, page_of
from core.database.ids import parse_uuid
from core.errors import RateLimitedError
from core.http.origin import origin_of
from jobs.admin.dead_letters import DeadLetterAdmin, why_not_replayed
from jobs.admin.story import story_of
from jobs.models import QueueEntry
from jobs.models.queue import QueueEntryQuerySet
from jobs.queue.cancel import NotQueuedError, cancel_entries, cancel_run
from jobs.queue.queue_limit import QueueFullError
from jobs.queue.replay import (
    MAX_REPLAYS,
    NotReplayableError,
    number_of_runs,
    replay_runs,
)
from scripts_engine.admin.runs.filters import YES
from scripts_engine.admin.runs.page import Replay
from scripts_engine.models import Run, RunStatus, Trigger
from scripts_engine.models.run import FAILURES, RunQuerySet
from scripts_engine.runs.problems import NOT_RUN_ERRORS, why_not_run
from scripts_engine.runs.spec import Author

_QUEUES = (
    "Replay queues this payload as new work, with all its attempts, for the version that its hook "
    "or script runs now."
)
_SETTLES = "The dead letter is then settled."


def show_started_run(
    model_admin: ModelAdmin[Any],
    request: HttpRequest,
    row: Model,
    start: Callable[[], Run],
    told: str,
) -> HttpResponse:
    """Goes to the run that the row's action started, or to the row with the reason for none."""
    try:
        run = start()
    except ValidationError as error:
        model_admin.message_user(request, " ".join(error.messages), messages.ERROR)
    except NOT_RUN_ERRORS as error:
        model_admin.message_user(request, why_not_run(error).text, messages.ERROR)
    except RateLimitedError as error:
        text = f"There were too many calls. Try again in {error.retry_after_seconds} s."
        model_admin.message_user(request, text, messages.ERROR)
    else:
        model_admin.message_user(request, told, messages.SUCCESS)
        return redirect(page_of(run))
    return redirect(page_of(row))


class QueuedRunAdmin(DeadLetterAdmin):
    page_scopes = {
        **DeadLetterAdmin.page_scopes,
        **dict.fromkeys(
            ("cancel", "replay", "replays", "replays_cancel"),
            Scope.OPERATE_QUEUE,
        ),
    }

    def parts_of_page(self, request: HttpRequest, run: Run, *, is_runnable: bool) -> dict[str, Any]:
        parts = super().parts_of_page(request, run, is_runnable=is_runnable)
        is_read = self.allows(request, Scope.READ_PAYLOADS, run)
        parts = {**parts, "story": story_of(run, with_errors=is_read)}
        if not self.allows(request, Scope.OPERATE_QUEUE, run):
            return parts
        if run.status == RunStatus.QUEUED:
            parts["cancel"] = action_of(run, "cancel")
        elif (
            is_runnable
            and run.attempt is not None
            and run.has_ended
            and run.trigger != Trigger.TEST
        ):
            what = f"{_QUEUES} {_SETTLES}" if run.is_dead_letter else _QUEUES
            parts["replay"] = Replay(action_of(run, "replay"), what)
        return parts

    def get_urls(self) -> list[URLPattern]:
        steering = [
            path(
                f"<path:object_id>/{name}/",
                self.admin_site.admin_view(view),
                name=f"scripts_engine_run_{name}",
            )
            for name, view in {"cancel": self.cancel, "replay": self.replay}.items()
        ]
        followed = [
            path(
                f"{address}/",
                self.admin_site.admin_view(view),
                name=f"scripts_engine_run_{name}",
            )
            for address, name, view in (
                ("replays", "replays", require_GET(self.replays)),
                ("replays/cancel", "replays_cancel", require_POST(self.cancel_replays)),
            )
        ]
        return [*followed, *steering, *super().get_urls()]

    def replays(self, request: HttpRequest) -> HttpResponse:
        """Shows how far the person's replays are, from the ``first`` to the ``last`` one."""
        progress = progress_of(self._replays(request))
        first_and_last = request.GET.urlencode()
        return TemplateResponse(
            request,
            "admin/replays.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": "Replays",
                "progress": progress,
                "cancel": f"{list_of(Run, 'replays_cancel')}?{first_and_last}",
                "queue": list_of(QueueEntry),
                "dead_letters": list_of(Run, dead_letter=YES),
            },
        )

    def cancel_replays(self, request: HttpRequest) -> HttpResponse:
        """Takes those that wait, or wait to be tried again, out of the queue. POST only."""
        waiting = entries_of(self._replays(request))
        cancelled, others = cancel_entries(waiting, origin=origin_of(request))
        self.message_user(request, *what_was_cancelled(cancelled, others))
        return redirect(f"{list_of(Run, 'replays')}?{request.GET.urlencode()}")

    def _replays(self, request: HttpRequest) -> RunQuerySet:
        if not self.has_module_permission(request):
            raise PermissionDenied
        steered = self.rows_with(request, Scope.OPERATE_QUEUE)
        return replays_of(request, cast("RunQuerySet", steered))

    def cancel(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Takes a waiting run out of the queue. POST only."""
        run: Run = self.get_or_404(request, object_id)
        if request.method == "POST":
            try:
                cancel_run(run, origin=origin_of(request))
            except NotQueuedError:
                self.message_user(request, "The run does not wait any more.", messages.ERROR)
            else:
                self.message_user(request, "The run is cancelled.", messages.SUCCESS)
        return redirect(page_of(run))

    def replay(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Queues the payload of an ended run again, and shows the new run. POST only."""
        run: Run = self.get_or_404(request, object_id)
        if request.method == "POST":
            author = Author(user=person(request))
            try:
                (run_id,) = replay_runs([run], author=author, origin=origin_of(request))
            except (NotReplayableError, QueueFullError) as error:
                self.message_user(request, why_not_replayed(error), messages.ERROR)
            else:
                self.message_user(request, "The payload is queued as a new run.", messages.SUCCESS)
                return redirect(page_of(Run(pk=run_id)))
        return redirect(page_of(run))


# --- How far replays are --------------------------------------------------------------------------


_PARAMETERS = {"first", "last"}


class Part(NamedTuple):
    """One kind of end in the picture, in replays from its left edge."""

    kind: str
    start: int
    width: int


class Progress(NamedTuple):
    """Of how many replays, how many have ended how."""

    total: int
    succeeded: int
    failed: int
    """For good: no attempt follows."""
    cancelled: int

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.cancelled

    @property
    def parts(self) -> list[Part]:
        """From left to right, each where the one before it ends."""
        return [
            Part("succeeded", 0, self.succeeded),
            Part("failed", self.succeeded, self.failed),
            Part("cancelled", self.succeeded + self.failed, self.cancelled),
        ]

    @property
    def text(self) -> str:
        parts = [
            f"{number:,} {what}"
            for number, what in (
                (self.succeeded, "succeeded"),
                (self.failed, "failed for good"),
                (self.cancelled, "cancelled"),
                (self.total - self.ended, "to go"),
            )
            if number
        ]
        noun = "replay" if self.total == 1 else "replays"
        return f"{self.total:,} {noun}: {', '.join(parts)}."


def replays_of(request: HttpRequest, visible: RunQuerySet) -> RunQuerySet:
    """The person's replays in the range that the address names.

    Raises ``Http404`` if it names none of the visible runs.
    """
    if set(request.GET) != _PARAMETERS:
        raise Http404
    first, last = parse_uuid(request.GET["first"]), parse_uuid(request.GET["last"])
    if first is None or last is None:
        raise Http404
    replays = visible.triggered_by(Trigger.REPLAY).filter(
        pk__gte=first, pk__lte=last, first_run__isnull=True, started_by=person(request)
    )
    if not replays.exists():
        raise Http404
    return replays.order_by("pk")


def progress_of(replays: RunQuerySet) -> Progress:
    """How the newest attempt at each of them ended."""
    found = replays.values_list("pk", "status", "is_dead_letter")[:MAX_REPLAYS]
    newest = {run_id: (status, is_dead) for run_id, status, is_dead in found}
    failed = [run_id for run_id, (status, _) in newest.items() if status in FAILURES]
    later = Run.objects.later_attempts_of(failed).order_by("attempt", "pk")
    for run in later.only("first_run", "status", "is_dead_letter"):
        newest[run.first_attempt_id] = run.status, run.is_dead_letter
    return _counted(newest.values())


def entries_of(replays: RunQuerySet) -> QueueEntryQuerySet:
    """What waits of them, first attempts and later ones."""
    run_ids = list(replays.values_list("pk", flat=True)[:MAX_REPLAYS])
    return QueueEntry.objects.waiting().filter(payload_of__in=run_ids)


def what_was_cancelled(cancelled: int, others: int) -> tuple[str, int]:
    """A message and its level."""
    more = f" {others:,} had started or ended." if others else ""
    return (
        f"Cancelled {number_of_runs(cancelled)}.{more}",
        messages.WARNING if others else messages.SUCCESS,
    )


def _counted(newest: Iterable[tuple[str, bool | None]]) -> Progress:
    statuses: Counter[str] = Counter()
    for status, is_dead_letter in newest:
        # A failed attempt that is followed by another was never a dead letter.
        is_followed = status in FAILURES and is_dead_letter is None
        statuses[RunStatus.QUEUED if is_followed else status] += 1
    return Progress(
        total=statuses.total(),
        succeeded=statuses[RunStatus.SUCCEEDED],
        failed=sum(statuses[status] for status in FAILURES),
        cancelled=statuses[RunStatus.CANCELLED],
    )
