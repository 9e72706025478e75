"""The newest runs, and the failing scripts with their last error."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.safestring import SafeString

from config.admin.home.ago import ago
from core.admin.links import list_of, page_of
from scripts_engine.admin.runs.filters import NOT_SUCCEEDED
from scripts_engine.admin.runs.statuses import status_label
from scripts_engine.models import Run, RunStatus
from scripts_engine.models.run import RunQuerySet
from scripts_engine.recent_runs import NEWEST_FAILURES, FailingScript, failing_scripts

_MAX_LATEST = 8
_MAX_FAILING = 5
_MAX_ERROR_LENGTH = 240


@dataclass(frozen=True, slots=True)
class LatestRun:
    url: str
    script: str
    organisation: str
    label: SafeString
    trigger: str
    duration_ms: float
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
            duration_ms=run.duration_ms,
            ago=ago(run.started_at),
            at=run.started_at,
        )
        for run in newest[:_MAX_LATEST]
    ]


@dataclass(frozen=True, slots=True)
class Row:
    script: str
    script_url: str
    organisation: str
    failures: int
    failures_url: str
    error: str
    status: str
    run_url: str
    ago: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Failing:
    rows: list[Row]
    is_cut: bool
    """Whether there were more failures than were examined."""
    looked_at: int = NEWEST_FAILURES


def failing(
    runs: RunQuerySet, since: datetime, until: datetime, *, with_organisation: bool
) -> Failing:
    worst = failing_scripts(runs, since, until, _MAX_FAILING)
    return Failing(
        rows=[_row(one, with_organisation=with_organisation) for one in worst.scripts],
        is_cut=worst.is_cut,
    )


def _row(one: FailingScript, *, with_organisation: bool) -> Row:
    script, run = one.last.script, one.last
    return Row(
        script=script.name,
        script_url=page_of(script),
        organisation=script.organisation.name if with_organisation else "",
        failures=one.failures,
        failures_url=list_of(
            Run, within="24h", status__exact=NOT_SUCCEEDED, script__id__exact=script.pk
        ),
        error=_error(run),
        status=run.status,
        run_url=page_of(run),
        ago=ago(run.started_at),
        at=run.started_at,
    )


def _error(run: Run) -> str:
    """Return the first line of the error, or the outcome if there is no error message."""
    first = run.error_message.strip().split("\n", 1)[0]
    text = first[:_MAX_ERROR_LENGTH] or RunStatus(run.status).label
    return text if run.error_line is None else f"Line {run.error_line}: {text}"
