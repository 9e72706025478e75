"""What organisations use: calls, failures, bytes and CPU time by day, script and hook.

Counted from runs, in the order in which they were committed as ended, and apart from calls. What is
counted and how far are one transaction, so each run counts once, whichever process counts it, and
in spite of one that is killed. Retention leaves runs that are not counted yet.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Case, Count, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce, TruncDate
from django.utils import timezone

from core.database.batches import delete_in_batches
from core.database.commit_order import settled_before
from scripts_engine.models import DailyUsage, Run, RunStatus, UsagePosition
from scripts_engine.models.run import FAILURES, RunQuerySet
from scripts_engine.models.usage import NO_HOOK

KEPT_DAYS = 90
# Limits of one transaction, because on SQLite it holds up all other writers.
BATCH_RUNS = 2_000

_IS_FIRST_ATTEMPT = Q(first_run__isnull=True)
_HAS_FAILED = Q(status__in=FAILURES) & (Q(attempt__isnull=True) | Q(is_dead_letter__isnull=False))


def today() -> date:
    return timezone.now().astimezone(UTC).date()


def first_kept_day() -> date:
    return today() - timedelta(days=KEPT_DAYS - 1)


def count_usage() -> int:
    """Counts the runs that have ended since the last count. Returns their number.

    Several processes may do so at once: each batch is counted by one of them.
    """
    total = 0
    while batch := _count_batch():
        total += batch
    return total


def forget_old_usage() -> int:
    return delete_in_batches(DailyUsage.objects.filter(day__lt=first_kept_day()))


def with_usage_counted(runs: RunQuerySet) -> RunQuerySet:
    """Leaves out the runs that have ended and whose usage is not counted yet."""
    return runs.exclude(ended_in__gte=_position())


def _position() -> int:
    position = UsagePosition.objects.first()
    return 0 if position is None else position.counted_before


class _Counted(NamedTuple):
    organisation_id: uuid.UUID
    script_id: uuid.UUID
    hook_id: uuid.UUID | None
    day: date
    calls: int
    failures: int
    bytes: int
    cpu_ms: float


def _count_batch() -> int:
    start = _position()
    ended = Run.objects.filter(ended_in__isnull=False)
    end = settled_before(ended, "ended_in")
    waiting = ended.filter(ended_in__gte=start, ended_in__lt=end).order_by("ended_in")
    found = waiting.values_list("ended_in", flat=True)[: BATCH_RUNS + 1]
    numbers = [number for number in found if number is not None]
    if not numbers:
        return 0
    if len(numbers) > BATCH_RUNS:
        # Runs of one transaction have one number, so they are counted together.
        end = max(numbers[-1], numbers[0] + 1)
    batch = waiting.filter(ended_in__lt=end)
    number, usage = batch.count(), _usage_of(batch)
    with transaction.atomic():
        if not _advance(start, end):
            return 0
        _add([each for each in usage if each.day >= first_kept_day()])
    return number


def _usage_of(runs: RunQuerySet) -> list[_Counted]:
    """Of the counted runs that ran. Attempts at the same work are one call."""
    used = runs.counted().exclude(status=RunStatus.CANCELLED)
    request_bytes = Case(When(_IS_FIRST_ATTEMPT, then=F("request_bytes")), default=Value(0))
    keys = ("organisation_id", "script_id", "hook_id", "day")
    rows = (
        used.order_by()
        .annotate(day=TruncDate("started_at", tzinfo=UTC))
        .values(*keys)
        .annotate(
            calls=Count("pk", filter=_IS_FIRST_ATTEMPT),
            failures=Count("pk", filter=_HAS_FAILED),
            bytes=Coalesce(Sum(request_bytes + F("response_bytes")), 0),
            cpu_ms=Coalesce(Sum("cpu_ms"), 0.0),
        )
    )
    return [_Counted(**row) for row in rows]


def _advance(start: int, end: int) -> bool:
    """Whether this process is the one that counts from there; others wait for its commit."""
    if start == 0:
        UsagePosition.objects.get_or_create(pk=1)
    position = UsagePosition.objects.filter(pk=1, counted_before=start)
    return position.update(counted_before=end) == 1


def _add(usage: Sequence[_Counted]) -> None:
    """Adds to the rows of these days. No other process does so meanwhile."""
    known = {
        (row.organisation_id, row.day, row.script_id, row.hook_id): row
        for row in DailyUsage.objects.filter(
            day__in={each.day for each in usage},
            script_id__in={each.script_id for each in usage},
        )
    }
    rows = []
    for each in usage:
        key = (each.organisation_id, each.day, each.script_id, each.hook_id or NO_HOOK)
        row = known.get(key) or DailyUsage(
            organisation_id=key[0],
            day=key[1],
            script_id=key[2],
            hook_id=key[3],
            calls=0,
            failures=0,
            bytes=0,
            cpu_seconds=0.0,
        )
        row.calls += each.calls
        row.failures += each.failures
        row.bytes += each.bytes
        row.cpu_seconds += each.cpu_ms / 1000
        rows.append(row)
    DailyUsage.objects.bulk_create([row for row in rows if row.pk is None])
    DailyUsage.objects.bulk_update(
        [row for row in rows if row.pk is not None],
        ["calls", "failures", "bytes", "cpu_seconds"],
        batch_size=200,
    )


# --- Reading it -----------------------------------------------------------------------------------


def days_between(since: datetime, until: datetime) -> tuple[date, date]:
    """The first and last day of UTC of which some lies in that period."""
    last = until.astimezone(UTC) - timedelta(microseconds=1)
    return since.astimezone(UTC).date(), last.date()


class DayOfUsage(NamedTuple):
    day: date
    calls: int = 0
    failures: int = 0
    bytes: int = 0
    cpu_seconds: float = 0.0


def by_day(rows: QuerySet[DailyUsage]) -> list[DayOfUsage]:
    """Adds up the rows for each of the days that are kept, the oldest first."""
    first = first_kept_day()
    sums = rows.filter(day__gte=first).order_by().values("day")
    found = {
        row["day"]: DayOfUsage(**row)
        for row in sums.annotate(**{name: Sum(name) for name in DayOfUsage._fields[1:]})
    }
    days = [first + timedelta(days=number) for number in range(KEPT_DAYS)]
    return [found.get(day) or DayOfUsage(day) for day in days]
