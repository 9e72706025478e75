"""The runs of the last 24 hours: their number, outcomes, durations and chart.

Runs by hooks, the API and saved scripts are counted; try-outs of unsaved drafts are not.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.admin.links import list_of
from scripts_engine.admin.runs.filters import COUNTED_ON_HOME, NOT_SUCCEEDED
from scripts_engine.models import Run, RunStatus
from scripts_engine.models.run import OUTCOMES, RunQuerySet
from scripts_engine.recent_runs import Durations, Hour, durations_of, runs_by_hour

# Readable on a light and a dark background; the colours of the bars are in home.css.
_AXIS = "#7d7d87"


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
class Outcome:
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
    outcomes: list[Outcome]
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


def _outcome(status: RunStatus, hours: Sequence[Hour]) -> Outcome:
    return Outcome(
        status=status.value,
        title=status.label,
        count=sum(hour.counts[status.value] for hour in hours),
        url=list_of(Run, **COUNTED_ON_HOME, status__exact=status.value),
    )
