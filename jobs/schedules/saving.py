"""Checks and saves schedules: one that a person changes, or all that a release changes."""

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import datetime
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.db.models import CharField
from django.db.models.functions import Cast
from django.utils import timezone

from accounts.audit import Happened, Subject, record_all
from accounts.models import Organisation
from accounts.revisions import REVISION, revise_all
from core.errors import NotFoundError
from core.http.origin import Origin
from core.names import clean_name, name_key, name_taken
from jobs.audit_kinds import JobEvent, JobSubject
from jobs.models import Schedule, ScheduleTick, TickOutcome
from jobs.models.schedule import ScheduleQuerySet
from jobs.queue.enqueue import invalid
from jobs.schedules.cron import (
    InvalidCronError,
    UnknownTimeZoneError,
    clean_cron,
    clean_time_zone,
    next_ticks,
)
from scripts_engine.libraries import refuse_library
from scripts_engine.models import Script
from scripts_engine.releases.kinds import kind_named
from scripts_engine.releases.recording import releasing

# The name of schedules among what releases change.
KIND = "Schedule"
MAX_SCHEDULES = 100
MAX_PAYLOAD_BYTES = 64 * 1024
# Fields that people set.
FIELDS = frozenset(
    {
        "script",
        "name",
        "cron",
        "time_zone",
        "payload",
        "is_enabled",
        "overlap",
        "catch_up",
        "catch_up_window_seconds",
    }
)
_CHANGING_TICKS = frozenset({"cron", "time_zone", "is_enabled"})
_CHECKED_HERE = ("organisation", "script", "name", "payload")


class ChangedSchedule(NamedTuple):
    """A schedule as it is to be, and as it was: ``None`` for a new one."""

    schedule: Schedule
    before: Schedule | None
    is_deleted: bool = False

    @property
    def changed(self) -> list[str]:
        """The fields that differ, in alphabetical order; all of one that comes or goes."""
        new, old = self.schedule, self.before
        if old is None or self.is_deleted:
            return sorted(FIELDS)
        return sorted(name for name in FIELDS if _value(new, name) != _value(old, name))


def _value(schedule: Schedule, name: str) -> object:
    value = schedule.script_id if name == "script" else getattr(schedule, name)
    return bytes(value) if isinstance(value, memoryview) else value


@contextmanager
def changing_schedule(
    stale: Schedule,
    origin: Origin,
    *,
    expected_revision: int | None = None,
) -> Iterator[Schedule]:
    """The schedule's current row, locked, to change it: what has changed becomes one release.

    Raises ``NotFoundError`` if it was deleted, ``ConflictError`` if it is not of the expected
    revision, or ``ValidationError`` by field.
    """
    with releasing(stale.organisation_id, origin) as changes:
        changes.watch(kind_named(KIND), [stale.pk])
        schedule = locked_schedules(changes.organisation, [stale.pk]).first()
        if schedule is None:
            raise NotFoundError("The schedule is deleted.")
        schedule.check_revision(expected_revision)
        before = copy(schedule)
        yield schedule
        changed = ChangedSchedule(schedule, before)
        check_and_save(changes.organisation, [changed], origin=origin)


def locked_schedules(
    organisation: Organisation, schedule_ids: Collection[uuid.UUID]
) -> ScheduleQuerySet:
    """The schedules' current rows, locked until the end of the transaction."""
    # Not for their keys, or what refers to the schedules would wait.
    rows = Schedule.objects.select_for_update(no_key=True, of=("self",)).order_by("pk")
    rows = rows.select_related("script", "organisation")
    return rows.filter(organisation=organisation, pk__in=schedule_ids)


def check_and_save(
    organisation: Organisation,
    changes: Sequence[ChangedSchedule],
    *,
    origin: Origin,
) -> None:
    """Raises ``ValidationError`` by field."""
    for _, problem in problems_of(organisation, changes):
        raise problem
    save_schedules(organisation, changes, origin=origin)


# --- Checking -------------------------------------------------------------------------------------


def problems_of(
    organisation: Organisation, changes: Sequence[ChangedSchedule]
) -> Iterator[tuple[Schedule, ValidationError]]:
    """What is wrong with the schedules, each problem by its field.

    Takes a fixed number of statements. Cleans names, crons and time zones.
    """
    there = [each for each in changes if not each.is_deleted]
    rows = Script.objects.of_organisation(organisation)
    rows = rows.filter(pk__in={each.schedule.script_id for each in there})
    scripts = {script.pk: script for script in rows}
    taken = names_in(organisation, [each.schedule.pk for each in changes])
    for change in there:
        schedule = change.schedule
        try:
            _check(schedule, scripts.get(schedule.script_id), taken)
        except ValidationError as problem:
            yield schedule, problem
        taken.add(name_key(schedule.name))


def names_in(organisation: Organisation, without: Collection[uuid.UUID] = ()) -> set[str]:
    """The keys of the names of the organisation's schedules."""
    others = Schedule.objects.filter(organisation=organisation).exclude(pk__in=without)
    return set(others.order_by().values_list("name_key", flat=True))


def _check(schedule: Schedule, script: Script | None, taken: set[str]) -> None:
    """Messages never contain the value."""
    if script is None:
        raise invalid("script", "Choose a script of the same organisation.")
    refuse_library(script)
    schedule.name = clean_name(schedule.name)
    if name_key(schedule.name) in taken:
        raise name_taken(schedule.name)
    try:
        schedule.cron = clean_cron(schedule.cron)
    except InvalidCronError as error:
        raise invalid("cron", str(error)) from None
    try:
        schedule.time_zone = clean_time_zone(schedule.time_zone)
    except UnknownTimeZoneError as error:
        raise invalid("time_zone", str(error)) from None
    if len(schedule.payload) > MAX_PAYLOAD_BYTES:
        raise invalid("payload", f"Enter at most {MAX_PAYLOAD_BYTES:,} bytes.")
    schedule.clean_fields(exclude=_CHECKED_HERE)


# --- Saving ---------------------------------------------------------------------------------------


def save_schedules(
    organisation: Organisation,
    changes: Sequence[ChangedSchedule],
    *,
    origin: Origin,
) -> None:
    """Saves schedules without problems, in a transaction that locks the organisation and them.

    Counts revisions, sets the next ticks, records events. Takes a fixed number of statements.
    Raises ``ValidationError`` if there would be too many.
    """
    changes = [each for each in changes if each.changed]
    deleted = [each.schedule.pk for each in changes if each.is_deleted]
    there = [each for each in changes if not each.is_deleted]
    new = [each.schedule for each in there if each.before is None]
    kept = [each.schedule for each in there if each.before is not None]
    if deleted:
        Schedule.objects.filter(pk__in=deleted).delete()
    if new and Schedule.objects.of_organisation(organisation).count() + len(new) > MAX_SCHEDULES:
        raise invalid("script", f"An organisation has at most {MAX_SCHEDULES} schedules.")
    now = timezone.now()
    for each in there:
        if not _CHANGING_TICKS.isdisjoint(each.changed):
            each.schedule.next_tick_at = _next_tick(each.schedule, now)
    for schedule in new:
        schedule.revision = 0
    revise_all([*new, *kept], organisation.pk, origin)
    _update(kept, now)
    Schedule.objects.bulk_create(new)
    record_all(origin, organisation, [_event(each) for each in changes])


def _update(schedules: Sequence[Schedule], now: datetime) -> None:
    if not schedules:
        return
    if len(schedules) > 1:
        # They may swap names, and databases check the constraint after each row.
        rows = Schedule.objects.filter(pk__in=[schedule.pk for schedule in schedules])
        rows.update(name_key=Cast("pk", CharField()))
    dropped = []
    for schedule in schedules:
        schedule.name_key, schedule.updated_at = name_key(schedule.name), now
        if not schedule.is_enabled and schedule.buffered_tick_at is not None:
            outcome, tick_at = TickOutcome.SKIPPED_OVERLAP, schedule.buffered_tick_at
            dropped.append(ScheduleTick(schedule=schedule, tick_at=tick_at, outcome=outcome))
            schedule.buffered_tick_at = None
    ScheduleTick.objects.bulk_create(dropped, ignore_conflicts=True)
    columns = {"name_key", "updated_at", "next_tick_at", "buffered_tick_at"}
    Schedule.objects.bulk_update(schedules, sorted(FIELDS | REVISION | columns))


def _next_tick(schedule: Schedule, after: datetime) -> datetime | None:
    """``None`` if the schedule is disabled."""
    if not schedule.is_enabled:
        return None
    return next(iter(next_ticks(schedule.cron, schedule.time_zone, after, 1)), None)


def _event(change: ChangedSchedule) -> Happened:
    about = Subject(JobSubject.SCHEDULE, change.schedule.pk, str(change.schedule))
    if change.is_deleted:
        return Happened(JobEvent.SCHEDULE_DELETED, about)
    if change.before is None:
        return Happened(JobEvent.SCHEDULE_CREATED, about)
    return Happened(JobEvent.SCHEDULE_CHANGED, about, ", ".join(change.changed))
