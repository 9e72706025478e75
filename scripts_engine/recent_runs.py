"""Statistics of recent runs, from queries that stay cheap with millions of runs.

A run counts at the time of its id, when it was requested. Try-outs of drafts, which are unsaved
sources, are not counted: they affect only their author. Runs are counted on indexes alone.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from django.db.models import CharField, Count, IntegerField, Value

from scripts_engine.models import RunStatus
from scripts_engine.models.run import OUTCOMES, RunQuerySet

HOUR = timedelta(hours=1)
NEWEST_DURATIONS = 10_000

_ALL, _OTHERS, _DRAFTS = "all", "others", "drafts"


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


def runs_by_hour(
    runs: RunQuerySet, since: datetime, until: datetime, *, has_drafts: bool = True
) -> list[Hour]:
    """Counts all runs on the primary key, and the rare ones on partial indexes.

    ``has_drafts``: whether there may be runs of drafts among these.
    """
    hours = list(hours_between(since, until))
    counted: Counter[tuple[int, str, str]] = Counter()
    for number, kind, status, count in _counted(runs, hours, has_drafts):
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
    runs: RunQuerySet, hours: Sequence[tuple[datetime, datetime]], has_drafts: bool
) -> Iterator[tuple[int, str, str, int]]:
    """Yields hour number, kind, status and count; the kind ``all`` has no status."""
    parts = []
    for number, (start, end) in enumerate(hours):
        of_hour = runs.called_between(start, end).order_by()
        hour = Value(number, IntegerField())
        every = of_hour.annotate(hour=hour, kind=_kind(_ALL), outcome=_kind(""))
        others = of_hour.not_succeeded().annotate(hour=hour, kind=_kind(_OTHERS))
        drafts = of_hour.of_drafts().annotate(hour=hour, kind=_kind(_DRAFTS))
        parts += [
            every.values_list("hour", "kind", "outcome").annotate(count=Count("pk")),
            others.values_list("hour", "kind", "status").annotate(count=Count("pk")),
        ]
        if has_drafts:
            parts.append(drafts.values_list("hour", "kind", "status").annotate(count=Count("pk")))
    yield from parts[0].union(*parts[1:], all=True)


def _kind(name: str) -> Value:
    return Value(name, CharField())


def _count_of(status: RunStatus, hour: int, counted: Counter[tuple[int, str, str]]) -> int:
    """The number of runs of saved versions with that status. Never below zero.

    Runs that are recorded between the counts make them differ.
    """
    if status is not RunStatus.SUCCEEDED:
        return max(0, counted[hour, _OTHERS, status] - counted[hour, _DRAFTS, status])
    others = sum(counted[hour, _OTHERS, other] for other in RunStatus)
    drafts = counted[hour, _DRAFTS, RunStatus.SUCCEEDED]
    return max(0, counted[hour, _ALL, ""] - others - drafts)


def _total_of(hour: int, counted: Counter[tuple[int, str, str]]) -> int:
    drafts = sum(counted[hour, _DRAFTS, status] for status in RunStatus)
    return max(0, counted[hour, _ALL, ""] - drafts)


def durations_of(runs: RunQuerySet, since: datetime, until: datetime) -> Durations | None:
    """Percentiles of the period's newest runs; ``None`` if there are no runs."""
    newest = runs.called_between(since, until).of_saved_versions().order_by("-pk")
    rows = newest.values_list("status", "duration_ms")[:NEWEST_DURATIONS]
    taken = sorted(duration for status, duration in rows if status in OUTCOMES)
    if not taken:
        return None
    return Durations(_percentile(taken, 0.50), _percentile(taken, 0.95), len(taken))


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile, which is the duration of an actual run."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
