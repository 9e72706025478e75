"""The hours as the JSON that Unfold's chart component draws."""

import json
from collections.abc import Sequence
from typing import Any

from scripts_engine.models import RunStatus
from scripts_engine.recent_runs import Hour

# Readable on both of the admin's backgrounds; the bars' colours stand in home.css.
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
    """A bar an hour, an outcome a colour."""
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
                for status in RunStatus
            ],
        }
    )
