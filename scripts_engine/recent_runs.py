"""Statistics of recent runs, from queries that stay cheap with millions of runs.

A run counts at the time of its id, when it was requested. Runs are counted on indexes alone; only
the rare ones that did not succeed are read one by one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from uuid import UUID

from django.db.models import CharField, Count, IntegerField, Value

from scripts_engine.models import Run, RunStatus
from scripts_engine.models.run import RunQuerySet

HOUR = timedelta(hours=1)
NEWEST_DURATIONS = 10_000
NEWEST_FAILURES = 1_000

_FAILURE_COLUMNS = (
    "started_at",
    "status",
    "error_message",
    "error_line",
    "script__name",
    "script__organisation__name",
)


@dataclass(frozen=True, slots=True)
class Hour:
    """The runs of one clock hour, or of the part of it in the requested period."""

    since: datetime
    until: datetime
    counts: dict[str, int]
    """Number of runs for every status of ``RunStatus``."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Percentiles in ms over the newest ``sample_size`` runs."""

    p50_ms: float
    p95_ms: float
    sample_size: int


@dataclass(frozen=True, slots=True)
class FailingScript:
    failures: int
    last: Run
    """The newest run that did not succeed, with its script prefetched."""


@dataclass(frozen=True, slots=True)
class FailingScripts:
    scripts: list[FailingScript]
    is_cut: bool
    """Whether there may be more failures than were counted."""


def hours_between(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Splits the period at each clock hour."""
    start = since
    while start < until:
        end = min(start.replace(minute=0, second=0, microsecond=0) + HOUR, until)
        yield start, end
        start = end


def runs_by_hour(runs: RunQuerySet, since: datetime, until: datetime) -> list[Hour]:
    """Counts all runs on the primary key, and those that did not succeed on a partial index."""
    hours = list(hours_between(since, until))
    all_of_hour: Counter[int] = Counter()
    others: dict[int, dict[str, int]] = {number: {} for number in range(len(hours))}
    for number, status, count in _counted(runs, hours):
        if status:
            others[number][status] = count
        else:
            all_of_hour[number] = count
    return [
        Hour(start, end, _with_succeeded(all_of_hour[number], others[number]))
        for number, (start, end) in enumerate(hours)
    ]


def _counted(
    runs: RunQuerySet, hours: Sequence[tuple[datetime, datetime]]
) -> Iterator[tuple[int, str, int]]:
    """Yields hour number, status and count; an empty status counts all runs of the hour."""
    parts = []
    for number, (start, end) in enumerate(hours):
        of_hour = runs.called_between(start, end).order_by()
        hour = Value(number, IntegerField())
        every = of_hour.annotate(hour=hour, outcome=Value("", CharField()))
        rare = of_hour.not_succeeded().annotate(hour=hour)
        parts += [
            every.values_list("hour", "outcome").annotate(count=Count("pk")),
            rare.values_list("hour", "status").annotate(count=Count("pk")),
        ]
    yield from parts[0].union(*parts[1:], all=True)


def _with_succeeded(all_of_hour: int, others: dict[str, int]) -> dict[str, int]:
    # Runs that are recorded between the two counts make them differ.
    succeeded = max(0, all_of_hour - sum(others.values()))
    return {
        status.value: succeeded if status is RunStatus.SUCCEEDED else others.get(status.value, 0)
        for status in RunStatus
    }


def durations_of(runs: RunQuerySet, since: datetime, until: datetime) -> Durations | None:
    """Percentiles of the period's newest runs; ``None`` if there are no runs."""
    newest = runs.called_between(since, until).order_by("-pk")
    taken = sorted(newest.values_list("duration_ms", flat=True)[:NEWEST_DURATIONS])
    if not taken:
        return None
    return Durations(_percentile(taken, 0.50), _percentile(taken, 0.95), len(taken))


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile, which is the duration of an actual run."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def failing_scripts(
    runs: RunQuerySet, since: datetime, until: datetime, limit: int
) -> FailingScripts:
    """The scripts with most of the newest failures, without deleted scripts.

    Runs of unsaved sources are left out, because they affect only their author.
    """
    failed = runs.called_between(since, until).not_succeeded().order_by("-pk")
    of_scripts = failed.filter(script__deleted_at__isnull=True, script_version__isnull=False)
    failures: Counter[UUID] = Counter()
    last: dict[UUID, UUID] = {}
    for script_id, run_id in of_scripts.values_list("script_id", "pk")[:NEWEST_FAILURES]:
        failures[script_id] += 1
        last.setdefault(script_id, run_id)
    worst = [script_id for script_id, _ in failures.most_common(limit)]
    shown = (
        Run.objects.select_related("script__organisation")
        .only(*_FAILURE_COLUMNS)
        .in_bulk([last[script_id] for script_id in worst])
    )
    return FailingScripts(
        [FailingScript(failures[script_id], shown[last[script_id]]) for script_id in worst],
        is_cut=failures.total() == NEWEST_FAILURES,
    )
