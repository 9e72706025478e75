"""Tells schedules whose runs take longer than the time to their next tick."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.utils import timezone

from scripts_engine.flows.schedules.cron import next_ticks
from scripts_engine.models import Run, Schedule

# Runs that are looked at: the newest, each attempt counting as one.
_NEWEST = 50
_COLUMNS = ("pk", "first_run_id", "scheduled_at", "status", "started_at", "duration_ms")


class LongRuns(NamedTuple):
    """How many of the schedule's latest ticks had work that took longer than to the next tick."""

    long: int
    ticks: int
    longest: timedelta
    """From when it was queued to the end of its last attempt, or until now."""


def long_runs(schedule: Schedule) -> LongRuns | None:
    """``None`` if the latest work ended, with all attempts, within the time to the next tick."""
    ticks: dict[uuid.UUID, datetime] = {}
    ends: dict[uuid.UUID, datetime] = {}
    runs = Run.objects.filter(schedule=schedule.pk, scheduled_at__isnull=False)
    for run in runs.order_by("-id").only(*_COLUMNS)[:_NEWEST]:
        if run.scheduled_at is None:
            continue
        first = run.first_attempt_id
        ticks[first] = run.scheduled_at
        ends[first] = max(_end_of(run), ends.get(first, run.scheduled_at))
    took = {first: end - _queued_at(first) for first, end in ends.items()}
    long = [took[first] for first in ends if _is_longer(schedule, ticks[first], took[first])]
    return LongRuns(len(long), len(ends), max(long)) if long else None


def _end_of(run: Run) -> datetime:
    """Now, if it has not ended."""
    if not run.has_ended:
        return timezone.now()
    return run.started_at + timedelta(milliseconds=run.duration_ms)


def _queued_at(run_id: uuid.UUID) -> datetime:
    """The time in a UUIDv7."""
    return datetime.fromtimestamp((run_id.int >> 80) / 1000, UTC)


def _is_longer(schedule: Schedule, tick: datetime, took: timedelta) -> bool:
    following = next_ticks(schedule.cron, schedule.time_zone, tick, 1)
    return bool(following) and took > following[0] - tick
