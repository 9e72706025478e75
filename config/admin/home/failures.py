"""The most frequent errors: one row per script and error."""

from dataclasses import dataclass
from datetime import datetime

from config.admin.home.ago import ago
from core.admin.links import action_of, list_of, page_of
from scripts_engine.admin.runs.filters import COUNTED_ON_HOME
from scripts_engine.admin.runs.presentation import error_of
from scripts_engine.failures import NEWEST_FAILURES, FailureGroup, failure_groups
from scripts_engine.models import Run
from scripts_engine.models.run import RunQuerySet

_LIMIT = 6


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
    try_url: str
    """Opens Try it with the payload of the last failure; empty if that cannot run."""
    newer_version: str
    """A notice of a version that was saved since the last failure; empty without one."""
    ago: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Failures:
    rows: list[Row]
    is_cut: bool
    """Whether there were more failures than were examined."""
    looked_at: int = NEWEST_FAILURES


def failures(
    runs: RunQuerySet, since: datetime, until: datetime, *, with_organisation: bool
) -> Failures:
    found = failure_groups(runs.called_between(since, until), _LIMIT)
    return Failures(
        rows=[_row(group, with_organisation=with_organisation) for group in found.groups],
        is_cut=found.is_cut,
    )


def _row(group: FailureGroup, *, with_organisation: bool) -> Row:
    script, run = group.last.script, group.last
    can_be_tried = script.organisation.is_active and run.payload_removed_at is None
    return Row(
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
        ago=ago(run.started_at),
        at=run.started_at,
    )


def _newer_version(run: Run) -> str:
    failed, current = run.script_version, run.script.current_version
    if failed is None or current is None or current.number <= failed.number:
        return ""
    return f"Version {current.number} saved since the last failure"
