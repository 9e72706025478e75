"""Deletes old runs, and asks apps above this one which runs and scripts they still need."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from accounts.models import Organisation
from core.database.batches import delete_in_batches
from core.database.ids import first_id_at
from scripts_engine.models import Run, Script
from scripts_engine.models.run import NEWEST_FIRST, OLDEST_FIRST, RunQuerySet
from scripts_engine.usage import with_usage_counted

# Limits of one transaction, because on SQLite it holds up all other writers.
BATCH_RUNS = 200

RunFilter = Callable[[RunQuerySet], RunQuerySet]
BeforeRunsAreDeleted = Callable[[uuid.UUID, uuid.UUID], None]
ScriptDeleted = Callable[[Script], object]
DeletedDefinitions = Callable[[Organisation, datetime], "QuerySet[Any]"]

_run_filters: list[RunFilter] = []
_before_runs_are_deleted: list[BeforeRunsAreDeleted] = []
_when_script_is_deleted: list[ScriptDeleted] = []
_definitions: list[DeletedDefinitions] = []


def keep_runs(leave_out: RunFilter) -> None:
    """Registers a filter that leaves out the runs that are still needed."""
    _run_filters.append(leave_out)


def unneeded(runs: RunQuerySet) -> RunQuerySet:
    """Those of the runs that nobody needs."""
    for leave_out in _run_filters:
        runs = leave_out(runs)
    return runs


def before_runs_are_deleted(prepare: BeforeRunsAreDeleted) -> None:
    """Registers a function of an organisation's id and the first id of a run that stays."""
    _before_runs_are_deleted.append(prepare)


def prepare_deletion(organisation_id: uuid.UUID, end: uuid.UUID) -> None:
    for prepare in _before_runs_are_deleted:
        prepare(organisation_id, end)


def when_script_is_deleted(follow: ScriptDeleted) -> None:
    """Registers a function that runs in the transaction which deletes a script."""
    _when_script_is_deleted.append(follow)


def script_is_deleted(script: Script) -> None:
    for follow in _when_script_is_deleted:
        follow(script)


def forget_with_scripts(deleted_rows: DeletedDefinitions) -> None:
    """Registers rows that count as definitions and have a foreign key ``script``.

    ``deleted_rows`` returns those of an organisation that were deleted before a time and are not
    needed any more, each with its size as ``bytes``.
    """
    _definitions.append(deleted_rows)


def definitions_of_apps_above() -> list[DeletedDefinitions]:
    return _definitions


def forget_old_runs() -> int:
    """Deletes every organisation's runs beyond its limits. Returns the number of runs."""
    organisations = Organisation.objects.only("runs_kept_days", "runs_kept").order_by("pk")
    return sum(_forget_runs_of(organisation) for organisation in organisations)


def _forget_runs_of(organisation: Organisation) -> int:
    ends = [_end_by_age(organisation), _end_by_number(organisation)]
    end = max((end for end in ends if end is not None), default=None)
    if end is None:
        return 0
    prepare_deletion(organisation.pk, end)
    beyond = with_usage_counted(Run.objects.in_range_of(organisation.pk).filter(pk__lt=end))
    return delete_in_batches(
        unneeded(beyond),
        size=BATCH_RUNS,
        order=OLDEST_FIRST,
        row_bytes=F("payload_bytes"),
    )


def _end_by_age(organisation: Organisation) -> uuid.UUID | None:
    """The smallest id to keep: ids begin with the time."""
    days = organisation.run_days_limit
    return first_id_at(timezone.now() - timedelta(days=days)) if days else None


def _end_by_number(organisation: Organisation) -> uuid.UUID | None:
    """The id of the oldest run to keep, read from the index without counting."""
    number = organisation.run_count_limit
    if number is None:
        return None
    newest_first = Run.objects.in_range_of(organisation.pk).order_by(*NEWEST_FIRST)
    return newest_first.values_list("pk", flat=True)[number - 1 : number].first()
