"""What a run of the queue belongs to: its attempts, what pushed it and what it pushed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.utils import timezone
from django.utils.safestring import SafeString

from core.admin.links import page_of
from core.admin.times import exact, until
from jobs.models import PausedQueue, QueueEntry, Schedule
from scripts_engine.admin.runs.presentation import error_of, status_label
from scripts_engine.models import Run, RunStatus
from scripts_engine.models.run import RunQuerySet

MAX_SHOWN = 50
MAX_REPLAYS = 5
MAX_READ = 20 * MAX_SHOWN
# What is read of a related run.
_COLUMNS = (
    "id",
    "status",
    "started_at",
    "duration_ms",
    "attempt",
    "first_run",
    "error_message",
    "error_line",
    "script__name",
)


class RelatedRun(NamedTuple):
    """A run in a list or tree; ``what`` is its error, or what it waits for."""

    url: str
    title: str
    status: SafeString
    at: datetime
    what: str
    is_this: bool


@dataclass(frozen=True, slots=True)
class Story:
    """Empty parts are not shown."""

    attempts: Sequence[RelatedRun]
    pushed_by: RelatedRun | None
    pushed: Sequence[RelatedRun]
    more_pushed: bool
    replay_of: RelatedRun | None
    replays: Sequence[RelatedRun]
    """The newest attempt at each of the latest replays of this work, the latest first."""
    schedule: Schedule | None
    waits: str
    """What a queued run waits for."""

    @property
    def is_empty(self) -> bool:
        has_related = (
            self.pushed_by or self.pushed or self.replay_of or self.replays or self.schedule
        )
        return not (len(self.attempts) > 1 or has_related or self.waits)


def story_of(run: Run, *, with_errors: bool) -> Story:
    """``with_errors`` also tells how the related runs failed, which may quote what came in."""
    others = Run.objects.filter(organisation=run.organisation_id).select_related("script")
    others = others.only(*_COLUMNS)
    of_work = []
    if run.attempt is not None:
        attempts = others.attempts_of(run.first_attempt_id).order_by("attempt", "id")
        of_work = list(attempts[:MAX_SHOWN])
    replays = _last_attempts(others.replays_of_any({run.pk, *(each.pk for each in of_work)}))
    pushed = _last_attempts(others.filter(pushed_by=run.pk))
    return Story(
        attempts=[_shown(each, run, with_errors, f"Attempt {each.attempt}") for each in of_work],
        pushed_by=_one(others, run, with_errors, run.pushed_by_id),
        pushed=[_shown(each, run, with_errors) for each in pushed[:MAX_SHOWN]],
        more_pushed=len(pushed) > MAX_SHOWN,
        replay_of=_one(others, run, with_errors, run.replay_of_id),
        replays=[_shown(each, run, with_errors) for each in replays[: -MAX_REPLAYS - 1 : -1]],
        schedule=_schedule_of(run),
        waits=_waits(run),
    )


def _last_attempts(queued: RunQuerySet) -> list[Run]:
    """The newest attempt at each piece of work, in the order in which they were queued."""
    newest: dict[UUID, Run] = {}
    for each in queued.order_by("id")[:MAX_READ]:
        newest[each.first_attempt_id] = each
    return list(newest.values())


def _schedule_of(run: Run) -> Schedule | None:
    if run.schedule_id is None:
        return None
    schedules = Schedule.objects.filter(organisation=run.organisation_id)
    return schedules.filter(pk=run.schedule_id, script__deleted_at__isnull=True).first()


def _one(
    others: RunQuerySet, run: Run, with_errors: bool, run_id: UUID | None
) -> RelatedRun | None:
    found = others.filter(pk=run_id).first() if run_id else None
    return None if found is None else _shown(found, run, with_errors)


def _shown(each: Run, run: Run, with_errors: bool, title: str = "") -> RelatedRun:
    return RelatedRun(
        url=page_of(each),
        title=title or str(each.script),
        status=status_label(each.status),
        at=each.started_at,
        what=_what(each, with_errors),
        is_this=each.pk == run.pk,
    )


def _what(run: Run, with_errors: bool) -> str:
    if run.error_message:
        return error_of(run) if with_errors else ""
    return _waits(run)


def _waits(run: Run) -> str:
    entries = QueueEntry.objects.filter(pk=run.pk).select_related("script", "organisation")
    entry = entries.first()
    if entry is None or run.status != RunStatus.QUEUED:
        return ""
    if obstacle := _obstacle(entry):
        return obstacle
    if entry.due_at > timezone.now():
        return f"Due {until(entry.due_at)}, on {exact(entry.due_at)}."
    return "Due now: it starts as soon as a slot of the queue is free."


def _obstacle(entry: QueueEntry) -> str:
    """What must be changed before the run starts, however long it waits."""
    if not entry.organisation.is_active:
        return "Its organisation is switched off."
    if not entry.script.is_enabled:
        return "Its script is disabled."
    if entry.script.current_version_id is None:
        return "Its script has no live version."
    if PausedQueue.objects.filter(organisation=entry.organisation).exists():
        return "The queue of its organisation is paused."
    return "" if entry.script.queue_paused_at is None else "The queue of its script is paused."
