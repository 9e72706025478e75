"""Creates, changes, deletes and runs schedules; tells whose runs outlast their interval."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.utils import timezone

from core.http.origin import NOWHERE, Origin
from core.names import free_name
from jobs.models import Schedule
from jobs.queue.enqueue import QueuedWork, enqueue, invalid
from jobs.schedules.cron import next_ticks
from jobs.schedules.saving import (
    FIELDS,
    KIND,
    ChangedSchedule,
    changing_schedule,
    check_and_save,
    locked_schedules,
    names_in,
    save_schedules,
)
from jobs.schedules.ticks import event_of
from scripts_engine.libraries import refuse_library
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.releases.kinds import kind_named
from scripts_engine.releases.recording import releasing
from scripts_engine.runs.problems import OrganisationInactiveError
from scripts_engine.runs.spec import Author


def create_schedule(script: Script, *, origin: Origin = NOWHERE, **fields: object) -> Schedule:
    """Creates a schedule out of the given ``FIELDS``; ``cron`` is required.

    Without a name, it gets that of its script, with a number if that is taken. Raises
    ``ValidationError`` by field.
    """
    schedule = Schedule(organisation=script.organisation, script=script)
    _take(schedule, fields)
    with releasing(script.organisation_id, origin) as changes:
        changes.watch(kind_named(KIND), [schedule.pk])
        if not schedule.name:
            schedule.name = free_name(script.name, names_in(script.organisation))
        created = [ChangedSchedule(schedule, None)]
        check_and_save(changes.organisation, created, origin=origin)
    return schedule


def update_schedule(
    schedule: Schedule,
    *,
    origin: Origin = NOWHERE,
    expected_revision: int | None = None,
    **fields: object,
) -> Schedule:
    """Changes the given ``FIELDS``, and returns the changed row.

    Raises what ``changing_schedule`` does.

    A schedule that is enabled again, or has another cron or time zone, goes on from now: what would
    have come in between is not missed.
    """
    expected = expected_revision
    with changing_schedule(schedule, origin, expected_revision=expected) as changed:
        _take(changed, fields)
    return changed


def delete_schedule(schedule: Schedule, *, origin: Origin = NOWHERE) -> None:
    """Deletes the schedule. Its queued runs still run, and its runs stay readable."""
    delete_schedules([schedule], origin=origin)


def delete_schedules(schedules: Iterable[Schedule], *, origin: Origin = NOWHERE) -> None:
    """Deletes schedules, those of an organisation as one release, like ``delete_schedule``."""
    ids = defaultdict(list)
    for schedule in schedules:
        ids[schedule.organisation_id].append(schedule.pk)
    for organisation_id, schedule_ids in ids.items():
        with releasing(organisation_id, origin) as changes:
            changes.watch(kind_named(KIND), schedule_ids)
            rows = locked_schedules(changes.organisation, schedule_ids)
            deleted = [ChangedSchedule(row, row, is_deleted=True) for row in rows]
            save_schedules(changes.organisation, deleted, origin=origin)


def delete_schedules_of(script: Script) -> None:
    """Deletes the schedules of a script that is being deleted, in the caller's release."""
    Schedule.objects.filter(script=script).delete()


def _take(schedule: Schedule, fields: Mapping[str, object]) -> None:
    for name in FIELDS & fields.keys():
        value = fields[name]
        setattr(schedule, name, value.strip() if isinstance(value, str) else value)


# --- Outside their ticks --------------------------------------------------------------------------


def run_schedule_now(schedule: Schedule, *, author: Author, origin: Origin = NOWHERE) -> Run:
    """Queues a run with the schedule's payload, even if the schedule is disabled or has a run.

    The run has no tick, and ticks go on as before; a tick at which the run has not ended meets it
    like a run of an earlier tick. Raises ``ValidationError`` if the script is disabled or not live,
    ``OrganisationInactiveError`` or ``QueueFullError``.
    """
    script = schedule.script
    refuse_library(script)
    if not schedule.organisation.is_active:
        raise OrganisationInactiveError
    if not script.is_enabled or script.deleted_at is not None:
        message = "The script is disabled. Enable it first."
        raise invalid("id", message)
    if script.current_version_id is None:
        raise invalid("id", "The script has no live version. Publish one first.")
    work = QueuedWork(
        organisation_id=schedule.organisation_id,
        script_id=script.pk,
        version_id=script.current_version_id,
        event=event_of(schedule, origin.client_address),
        trigger=Trigger.SCHEDULE,
        started_by=author,
        schedule_id=schedule.pk,
    )
    return Run.objects.get(pk=enqueue(work))


# --- Runs that outlast their interval -------------------------------------------------------------

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
    runs = Run.objects.filter(schedule_id=schedule.pk, scheduled_at__isnull=False)
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
