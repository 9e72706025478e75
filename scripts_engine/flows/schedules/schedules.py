"""Creates, changes and deletes schedules."""

from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.audit import Subject, record
from accounts.models import AuthEventKind, Organisation, SubjectKind, User
from core.http.origin import NOWHERE, Origin
from scripts_engine.flows.schedules.cron import (
    InvalidCronError,
    UnknownTimeZoneError,
    clean_cron,
    clean_time_zone,
    next_ticks,
)
from scripts_engine.models import Schedule, Script, TickOutcome

MAX_SCHEDULES = 100
MAX_PAYLOAD_BYTES = 64 * 1024
# Fields that ``create_schedule`` and ``update_schedule`` set.
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


def create_schedule(
    script: Script, *, origin: Origin = NOWHERE, by: User | None = None, **fields: object
) -> Schedule:
    """Creates a schedule out of the given ``FIELDS``; ``cron`` is required.

    Raises ``ValidationError`` by field.
    """
    schedule = Schedule(organisation=script.organisation, script=script)
    _take(schedule, fields)
    _clean(schedule)
    with transaction.atomic():
        Organisation.objects.select_for_update(no_key=True).get(pk=script.organisation_id)
        if Schedule.objects.of_organisation(script.organisation).count() >= MAX_SCHEDULES:
            raise _invalid("script", f"An organisation has at most {MAX_SCHEDULES} schedules.")
        schedule.next_tick_at = _next_tick(schedule, timezone.now())
        schedule.save()
        _record(AuthEventKind.SCHEDULE_CREATED, schedule, origin, by)
    return schedule


def update_schedule(
    schedule: Schedule, *, origin: Origin = NOWHERE, by: User | None = None, **changes: object
) -> Schedule:
    """Changes the given ``FIELDS``, returns the changed row. Raises ``ValidationError`` by field.

    A schedule that is enabled again, or has another cron or time zone, goes on from now: what would
    have come in between is not missed.
    """
    with transaction.atomic():
        rows = Schedule.objects.select_related("script", "organisation")
        changed = rows.select_for_update(of=("self",)).get(pk=schedule.pk)
        before = {name: getattr(changed, name) for name in FIELDS}
        _take(changed, changes)
        _clean(changed)
        names = sorted(name for name in FIELDS if _differs(before[name], getattr(changed, name)))
        if not _CHANGING_TICKS.isdisjoint(names):
            changed.next_tick_at = _next_tick(changed, timezone.now())
        if not changed.is_enabled:
            _drop_buffered(changed)
        changed.save()
        if names:
            _record(AuthEventKind.SCHEDULE_CHANGED, changed, origin, by, ", ".join(names))
    return changed


def delete_schedule(
    schedule: Schedule, *, origin: Origin = NOWHERE, by: User | None = None
) -> None:
    """Deletes the schedule. Its queued runs still run, and its runs stay readable."""
    with transaction.atomic():
        if Schedule.objects.filter(pk=schedule.pk).delete()[0]:
            _record(AuthEventKind.SCHEDULE_DELETED, schedule, origin, by)


def forget_schedules_of_deleted_scripts() -> int:
    """Deletes schedules whose script is deleted; they are not shown, and run nothing."""
    return Schedule.objects.filter(script__deleted_at__isnull=False).delete()[0]


def _take(schedule: Schedule, fields: dict[str, object]) -> None:
    for name in FIELDS & fields.keys():
        value = fields[name]
        setattr(schedule, name, value.strip() if isinstance(value, str) else value)


def _clean(schedule: Schedule) -> None:
    """Raises ``ValidationError`` by field. Messages never contain the value."""
    try:
        schedule.cron = clean_cron(schedule.cron)
    except InvalidCronError as error:
        raise _invalid("cron", str(error)) from None
    try:
        schedule.time_zone = clean_time_zone(schedule.time_zone)
    except UnknownTimeZoneError as error:
        raise _invalid("time_zone", str(error)) from None
    if len(schedule.payload) > MAX_PAYLOAD_BYTES:
        raise _invalid("payload", f"Enter at most {MAX_PAYLOAD_BYTES:,} bytes.")
    if schedule.script.organisation_id != schedule.organisation_id:
        raise _invalid("script", "Choose a script of the same organisation.")
    if schedule.script.deleted_at is not None:
        raise _invalid("script", "The script is deleted.")
    schedule.full_clean(exclude=["payload"])


def _invalid(field: str, message: str) -> ValidationError:
    return ValidationError({field: ValidationError(message, code="invalid")})


def _differs(before: object, after: object) -> bool:
    if isinstance(before, memoryview | bytes) and isinstance(after, memoryview | bytes):
        return bytes(before) != bytes(after)
    return before != after


def _next_tick(schedule: Schedule, after: datetime) -> datetime | None:
    """``None`` if the schedule is disabled."""
    if not schedule.is_enabled:
        return None
    return next(iter(next_ticks(schedule.cron, schedule.time_zone, after, 1)), None)


def _drop_buffered(schedule: Schedule) -> None:
    if schedule.buffered_tick_at is not None:
        schedule.ticks.get_or_create(
            tick_at=schedule.buffered_tick_at, defaults={"outcome": TickOutcome.SKIPPED_OVERLAP}
        )
        schedule.buffered_tick_at = None


def _record(
    kind: AuthEventKind, schedule: Schedule, origin: Origin, by: User | None, reason: str = ""
) -> None:
    about = Subject(SubjectKind.SCHEDULE, schedule.pk, str(schedule))
    record(kind, origin, about=about, by=by, organisation=schedule.organisation, reason=reason)
