"""The newest runs."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.safestring import SafeString

from config.admin.home.ago import ago
from core.admin.links import page_of
from scripts_engine.admin.runs.statuses import status_label
from scripts_engine.models.run import RunQuerySet

_LIMIT = 8


@dataclass(frozen=True, slots=True)
class LatestRun:
    url: str
    script: str
    organisation: str
    label: SafeString
    trigger: str
    duration_ms: float | None
    """``None`` if the script has not run."""
    ago: str
    at: datetime


def latest_runs(runs: RunQuerySet, *, with_organisation: bool) -> list[LatestRun]:
    newest = runs.select_related("script", "hook", "organisation").only(
        "started_at",
        "script__name",
        "hook__name",
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
            trigger=str(run.hook or run.get_trigger_display()),
            duration_ms=run.duration_ms if run.has_run else None,
            ago=ago(run.started_at),
            at=run.started_at,
        )
        for run in newest[:_LIMIT]
    ]
