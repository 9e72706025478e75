"""The newest failures, grouped by script and error.

Failures of drafts, test events and deleted scripts are left out: nobody waits for these. Errors
that differ only in numbers and ids are one error.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models.functions import Substr

from core.database.ids import moment_of
from scripts_engine.models import Run, RunStatus
from scripts_engine.models.run import RunQuerySet

NEWEST_FAILURES = 1_000
MAX_ERROR_LENGTH = 240

# More than the length of an error, because an error may begin with blank lines.
_READ_CHARACTERS = 500
_VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|[0-9]+(?:\.[0-9]+)?", re.IGNORECASE
)
_COLUMNS = (
    "started_at",
    "status",
    "error_message",
    "error_line",
    "payload_removed_at",
    "script__name",
    "script__organisation__name",
    "script__organisation__is_active",
    "script__current_version__number",
    "script_version__number",
)


class ErrorKind(NamedTuple):
    """What failures have in common."""

    script_id: UUID
    status: str
    error: str
    """The first line, without numbers and ids."""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    failures: int
    last: Run
    """The newest of the failures, with script, organisation and versions."""
    first_at: datetime
    """When the oldest of them was requested."""


@dataclass(frozen=True, slots=True)
class FailureGroups:
    groups: list[FailureGroup]
    is_cut: bool
    """Whether there may be more failures than were examined."""


def first_line(error: str, status: str) -> str:
    """The first line of an error, at most ``MAX_ERROR_LENGTH`` characters; the outcome if empty."""
    line = error[:_READ_CHARACTERS].strip().split("\n", 1)[0]
    return line[:MAX_ERROR_LENGTH] or RunStatus(status).label


def error_kind_of(script_id: UUID, status: str, error: str) -> ErrorKind:
    return ErrorKind(script_id, status, _VARYING.sub("#", first_line(error, status)))


def failure_groups(failed: RunQuerySet, limit: int) -> FailureGroups:
    """The most frequent errors among the newest ``NEWEST_FAILURES`` of these failures."""
    failures: Counter[ErrorKind] = Counter()
    last: dict[ErrorKind, UUID] = {}
    first: dict[ErrorKind, UUID] = {}
    for run_id, kind in _newest_failures(failed):
        failures[kind] += 1
        last.setdefault(kind, run_id)
        first[kind] = run_id
    frequent = [kind for kind, _ in failures.most_common(limit)]
    shown = (
        Run.objects.select_related(
            "script__organisation", "script__current_version", "script_version"
        )
        .only(*_COLUMNS)
        .in_bulk([last[kind] for kind in frequent])
    )
    return FailureGroups(
        [
            FailureGroup(failures[kind], shown[last[kind]], moment_of(first[kind]))
            for kind in frequent
        ],
        is_cut=failures.total() == NEWEST_FAILURES,
    )


def failures_like(failed: RunQuerySet, kind: ErrorKind) -> list[UUID]:
    """The ids of those of that kind, the newest first, among as many as ``failure_groups``."""
    return [run_id for run_id, other in _newest_failures(failed) if other == kind]


def _newest_failures(failed: RunQuerySet) -> Iterator[tuple[UUID, ErrorKind]]:
    callable_now = failed.counted().filter(script__deleted_at__isnull=True)
    newest = callable_now.order_by("-pk").annotate(
        error=Substr("error_message", 1, _READ_CHARACTERS)
    )
    columns = ("pk", "script_id", "status", "error")
    for run_id, script_id, status, error in newest.values_list(*columns)[:NEWEST_FAILURES]:
        yield run_id, error_kind_of(script_id, status, error)


def failing_since(runs: RunQuerySet) -> datetime | None:
    """When the oldest of the newest failures was requested; ``None`` without failures."""
    ids = list(
        runs.failed().counted().order_by("-pk").values_list("pk", flat=True)[:NEWEST_FAILURES]
    )
    return moment_of(ids[-1]) if ids else None
