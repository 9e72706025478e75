"""Statistics of recent runs, from queries that stay cheap with millions of runs.

A run counts at the time of its id, when it was requested. Drafts and test events do not count:
see ``RunQuerySet.counted``. Runs are counted on indexes alone, so all are counted first, and the
few that do not count are subtracted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db.models import (
    CharField,
    Count,
    IntegerField,
    Model,
    OuterRef,
    Subquery,
    UUIDField,
    Value,
)

from core.database.compiled_query import CompiledQuery, Parameter
from core.database.ids import first_id_at
from scripts_engine.models import Run, RunStatus
from scripts_engine.models.run import OUTCOMES, RunQuerySet

HOUR = timedelta(hours=1)
NEWEST_DURATIONS = 10_000

_ID: UUIDField[UUID, UUID] = UUIDField()
_ALL, _OTHERS, _TRIED, _FAILED = "all", "others", "tried", "failed"


@dataclass(frozen=True, slots=True)
class Hour:
    """The runs of one clock hour, or of the part of it in the requested period."""

    since: datetime
    until: datetime
    counts: dict[str, int]
    """Number of runs for every status of ``OUTCOMES``."""
    total: int
    """Number of all runs: also queued, running and cancelled ones."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Percentiles in ms over the newest ``sample_size`` runs."""

    p50_ms: float
    p95_ms: float
    sample_size: int


def hours_between(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Splits the period at each clock hour."""
    start = since
    while start < until:
        end = min(start.replace(minute=0, second=0, microsecond=0) + HOUR, until)
        yield start, end
        start = end


def runs_by_hour(runs: RunQuerySet, since: datetime, until: datetime) -> list[Hour]:
    """Counts all runs on the primary key, and the rare ones on partial indexes."""
    hours = list(hours_between(since, until))
    counted: Counter[tuple[int, str, str]] = Counter()
    for number, kind, status, count in _counted(runs, hours):
        counted[number, kind, status] = count
    return [
        Hour(
            start,
            end,
            {s.value: _count_of(s, number, counted) for s in OUTCOMES},
            _total_of(number, counted),
        )
        for number, (start, end) in enumerate(hours)
    ]


def _counted(
    runs: RunQuerySet, hours: Sequence[tuple[datetime, datetime]]
) -> Iterator[tuple[int, str, str, int]]:
    """Yields hour number, kind, status and count; the kind ``all`` has no status."""
    of_hour = runs.filter(pk__gte=Parameter("since", _ID), pk__lt=Parameter("until", _ID))
    of_hour = of_hour.order_by().annotate(hour=Parameter("hour", IntegerField()))
    every = of_hour.annotate(kind=_kind(_ALL), outcome=_kind(""))
    others = of_hour.not_succeeded().annotate(kind=_kind(_OTHERS))
    tried = of_hour.not_counted().annotate(kind=_kind(_TRIED))
    kinds = [
        every.values_list("hour", "kind", "outcome").annotate(count=Count("pk")),
        others.values_list("hour", "kind", "status").annotate(count=Count("pk")),
        tried.values_list("hour", "kind", "status").annotate(count=Count("pk")),
    ]
    counts = CompiledQuery(kinds[0].union(*kinds[1:], all=True))
    values = [
        {"hour": number, "since": first_id_at(start), "until": first_id_at(end)}
        for number, (start, end) in enumerate(hours)
    ]
    try:
        yield from counts.all_of(values)
    except EmptyResultSet:
        # The runs are those of no organisation.
        return


def _kind(name: str) -> Value:
    return Value(name, CharField())


def _count_of(status: RunStatus, hour: int, counted: Counter[tuple[int, str, str]]) -> int:
    """The number of runs with that status that count. Never below zero.

    Runs that are recorded between the counts make them differ.
    """
    if status is not RunStatus.SUCCEEDED:
        return max(0, counted[hour, _OTHERS, status] - counted[hour, _TRIED, status])
    others = sum(counted[hour, _OTHERS, other] for other in RunStatus)
    tried = counted[hour, _TRIED, RunStatus.SUCCEEDED]
    return max(0, counted[hour, _ALL, ""] - others - tried)


def _total_of(hour: int, counted: Counter[tuple[int, str, str]]) -> int:
    tried = sum(counted[hour, _TRIED, status] for status in RunStatus)
    return max(0, counted[hour, _ALL, ""] - tried)


@dataclass(frozen=True, slots=True)
class Activity:
    """The newest run of a row, and its runs since a time."""

    newest: Run | None
    """With its id, status and start alone."""
    runs: int
    failed: int


def activity_of(rows: Sequence[Model], column: str, since: datetime) -> dict[UUID, Activity]:
    """Reads the activity of each row by its id, whose runs name it in ``column``.

    Takes two statements for any number of rows, and counts on indexes alone.
    """
    if not rows:
        return {}
    ids = [row.pk for row in rows]
    of_rows = Run.objects.called_since(since).filter(**{f"{column}__in": ids}).order_by()
    counted = _count_by(column, of_rows)
    newest = _newest_runs(rows, column)
    return {
        key: Activity(newest.get(key), max(0, counted[key, _ALL]), max(0, counted[key, _FAILED]))
        for key in ids
    }


def _count_by(column: str, runs: RunQuerySet) -> Counter[tuple[UUID, str]]:
    """Counts the runs and the failed ones by the column: all, less those that do not count."""
    parts = [
        part.annotate(kind=_kind(kind), sign=Value(sign, IntegerField()))
        .values_list(column, "kind", "sign")
        .annotate(count=Count("pk"))
        for sign, some in ((1, runs), (-1, runs.not_counted()))
        for kind, part in ((_ALL, some), (_FAILED, some.failed()))
    ]
    counted: Counter[tuple[UUID, str]] = Counter()
    for key, kind, sign, count in parts[0].union(*parts[1:], all=True):
        counted[key, kind] += sign * count
    return counted


def _newest_runs(rows: Sequence[Model], column: str) -> dict[UUID, Run]:
    # By a range of one value: see ``in_range_of``.
    of_row = {f"{column}__gte": OuterRef("pk"), f"{column}__lte": OuterRef("pk")}
    newest = Run.objects.counted().filter(**of_row).order_by(column, "-id").values("pk")[:1]
    model = type(rows[0])._default_manager
    found = model.filter(pk__in=[row.pk for row in rows]).order_by()
    ids = found.annotate(newest_run=Subquery(newest)).values("newest_run")
    known = Run.objects.filter(pk__in=ids).only("status", "started_at", column).order_by()
    return {getattr(run, column): run for run in known}


def durations_of(runs: RunQuerySet, since: datetime, until: datetime) -> Durations | None:
    """Percentiles of the period's newest runs; ``None`` if there are no runs."""
    newest = runs.called_between(since, until).counted().order_by("-pk")
    rows = newest.values_list("status", "duration_ms")[:NEWEST_DURATIONS]
    taken = sorted(duration for status, duration in rows if status in OUTCOMES)
    if not taken:
        return None
    return Durations(_percentile(taken, 0.50), _percentile(taken, 0.95), len(taken))


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile, which is the duration of an actual run."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
