"""The runs of the last day, the newest ones, the most frequent errors, and the run storage.

Drafts and test events are not counted.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.safestring import SafeString

from core.admin.links import action_of, list_of, page_of
from scripts_engine.admin.run_storage import RunStorageUse, run_storage_use
from scripts_engine.admin.runs.filters import COUNTED_ON_HOME, NOT_SUCCEEDED
from scripts_engine.admin.runs.presentation import error_of, status_label
from scripts_engine.admin.scripts.live import Suspect, suspect_of
from scripts_engine.callers import name_triggers
from scripts_engine.failures import NEWEST_FAILURES, FailureGroup, failure_groups
from scripts_engine.models import Release, Run, RunStatus, Script
from scripts_engine.models.run import OUTCOMES, RunQuerySet
from scripts_engine.recent_runs import Durations, Hour, durations_of, runs_by_hour
from scripts_engine.releases.live import suspects

# Readable on a light and a dark background; the colours of the bars are in home.css.
_AXIS = "#7d7d87"
_RUNS_SHOWN = 8
_FAILURES_SHOWN = 6
_ORGANISATIONS_SHOWN = 5


def _axis(**more: Any) -> dict[str, Any]:
    return {"stacked": True, "border": {"display": False}, "ticks": {"color": _AXIS, **more}}


OPTIONS = json.dumps(
    {
        "animation": False,
        "responsive": True,
        "maintainAspectRatio": False,
        "interaction": {"mode": "index", "intersect": False},
        "plugins": {"legend": {"display": False}},
        "scales": {
            "x": {
                **_axis(maxRotation=0, autoSkip=True, autoSkipPadding=20),
                "grid": {"display": False},
            },
            "y": {**_axis(precision=0, maxTicksLimit=5), "beginAtZero": True, "grid": {}},
        },
    }
)


def stacked_bars(hours: Sequence[Hour]) -> str:
    """Return the chart's data: one bar per hour, one colour per outcome."""
    return json.dumps(
        {
            "labels": [f"{hour.since:%H:%M}" for hour in hours],
            "datasets": [
                {
                    "label": status.label,
                    "data": [hour.counts[status.value] for hour in hours],
                    "backgroundColor": f"var(--mh-{status.value})",
                    "maxBarThickness": 28,
                    "borderRadius": 2,
                }
                for status in OUTCOMES
            ],
        }
    )


@dataclass(frozen=True, slots=True)
class OutcomeShare:
    status: str
    title: str
    count: int
    url: str


@dataclass(frozen=True, slots=True)
class HourRow:
    """A row of the chart's table: an hour, and its counts in the order of the outcomes."""

    since: datetime
    counts: list[int]


@dataclass(frozen=True, slots=True)
class Outcomes:
    total: int
    all_runs: str
    bad_runs: str
    outcomes: list[OutcomeShare]
    durations: Durations | None
    hours: list[HourRow]
    chart: str
    chart_options: str = OPTIONS

    @property
    def not_succeeded(self) -> int:
        return sum(o.count for o in self.outcomes if o.status != RunStatus.SUCCEEDED)

    @property
    def not_succeeded_percent(self) -> float:
        return 100 * self.not_succeeded / self.total if self.total else 0.0

    @property
    def in_words(self) -> str:
        """Describe the chart for screen readers."""
        parts = ", ".join(f"{outcome.count:,} {outcome.title.lower()}" for outcome in self.outcomes)
        return f"Runs of the last 24 hours by hour and outcome: {self.total:,} in all, {parts}."


def outcomes(runs: RunQuerySet, since: datetime, until: datetime) -> Outcomes:
    hours = runs_by_hour(runs, since, until)
    shown = [_outcome(status, hours) for status in OUTCOMES]
    return Outcomes(
        total=sum(hour.total for hour in hours),
        all_runs=list_of(Run, **COUNTED_ON_HOME),
        bad_runs=list_of(Run, **COUNTED_ON_HOME, status__exact=NOT_SUCCEEDED),
        outcomes=shown,
        durations=durations_of(runs, since, until),
        hours=[HourRow(hour.since, [hour.counts[s.value] for s in OUTCOMES]) for hour in hours],
        chart=stacked_bars(hours),
    )


def _outcome(status: RunStatus, hours: Sequence[Hour]) -> OutcomeShare:
    return OutcomeShare(
        status=status.value,
        title=status.label,
        count=sum(hour.counts[status.value] for hour in hours),
        url=list_of(Run, **COUNTED_ON_HOME, status__exact=status.value),
    )


@dataclass(frozen=True, slots=True)
class LatestRun:
    url: str
    script: str
    organisation: str
    label: SafeString
    trigger: str
    duration_ms: float | None
    """``None`` if the script has not run."""
    at: datetime


def latest_runs(runs: RunQuerySet, *, with_organisation: bool) -> list[LatestRun]:
    newest = runs.select_related("script", "organisation").only(
        "started_at",
        "script__name",
        "hook_id",
        "organisation__name",
        "status",
        "duration_ms",
        "trigger",
    )
    return [
        LatestRun(
            url=page_of(run),
            script=run.script.name,
            organisation=run.organisation.name if with_organisation else "",
            label=status_label(run.status),
            trigger=trigger,
            duration_ms=run.duration_ms if run.has_run else None,
            at=run.started_at,
        )
        for run, trigger in name_triggers(list(newest[:_RUNS_SHOWN]))
    ]


@dataclass(frozen=True, slots=True)
class FailureRow:
    script: str
    script_url: str
    organisation: str
    failures: int
    failures_url: str
    error: str
    status: str
    run_url: str
    try_url: str
    """Opens Try it with the payload of the last failure; empty if that cannot run."""
    newer_version: str
    """A notice of a version that was published since the last failure; empty without one."""
    suspect: Suspect | None
    """The release that may be to blame."""
    may_undo: bool
    at: datetime


@dataclass(frozen=True, slots=True)
class Failures:
    rows: list[FailureRow]
    is_cut: bool
    """Whether there were more failures than were examined."""
    looked_at: int = NEWEST_FAILURES


def failures(
    runs: RunQuerySet,
    since: datetime,
    until: datetime,
    *,
    with_organisation: bool,
    may_undo: Callable[[Script], bool],
) -> Failures:
    """``may_undo``: whether the person may undo releases of the script."""
    found = failure_groups(runs.failed().called_between(since, until), _FAILURES_SHOWN)
    began: defaultdict[UUID, list[datetime]] = defaultdict(list)
    for group in found.groups:
        began[group.last.script_id].append(group.first_at)
    blamed = suspects(began)
    return Failures(
        rows=[
            _row(
                group,
                blamed.get((group.last.script_id, group.first_at)),
                with_organisation=with_organisation,
                may_undo=may_undo(group.last.script),
            )
            for group in found.groups
        ],
        is_cut=found.is_cut,
    )


def _row(
    group: FailureGroup, release: Release | None, *, with_organisation: bool, may_undo: bool
) -> FailureRow:
    script, run = group.last.script, group.last
    can_be_tried = script.organisation.is_active and run.payload_removed_at is None
    return FailureRow(
        script=script.name,
        script_url=page_of(script),
        organisation=script.organisation.name if with_organisation else "",
        failures=group.failures,
        failures_url=list_of(Run, **COUNTED_ON_HOME, same_error_as=run.pk),
        error=error_of(run),
        status=run.status,
        run_url=page_of(run),
        try_url=action_of(script, "change", run=run.pk) if can_be_tried else "",
        newer_version=_newer_version(run),
        suspect=suspect_of(release, group.first_at),
        may_undo=may_undo,
        at=run.started_at,
    )


def _newer_version(run: Run) -> str:
    failed, current = run.script_version, run.script.current_version
    if failed is None or current is None or current.number <= failed.number:
        return ""
    return f"Version {current.number} published since the last failure"


@dataclass(frozen=True, slots=True)
class StorageRow:
    name: str
    url: str
    use: RunStorageUse


def run_storage(organisations: Any, *, are_linked: bool) -> list[StorageRow]:
    largest = (
        organisations.filter(run_storage__isnull=False)
        .order_by("-run_storage__bytes_used")
        .select_related("run_storage")
    )
    return [
        StorageRow(each.name, page_of(each) if are_linked else "", run_storage_use(each))
        for each in largest[:_ORGANISATIONS_SHOWN]
    ]
