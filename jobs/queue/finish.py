"""Ends attempts: the run as it ended, and what follows from it, in one transaction.

The runner that deletes the entry under its lease ends the run. So a result that comes after its
lease was given to others finds no entry, and is discarded.
"""

import logging
import random
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from http import HTTPStatus
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.alerts import alert
from core.database.commit_order import THIS_COMMIT
from core.database.compiled_query import CompiledUpdate, column_value
from core.database.ids import as_uuid
from core.database.unavailable import DatabaseUnavailable
from jobs.audit_kinds import JobAlert
from jobs.concurrent_runs import give_back_lease
from jobs.metrics import ATTEMPTS, DEAD_LETTERS
from jobs.models import QueueEntry, RunLease
from jobs.models.queue import MAX_LEASE
from jobs.queue.claim import Claimed
from jobs.queue.deduplication import KeyTakenError, free_keys
from jobs.queue.enqueue import QueuedRows, digest_of, entry_row, record_all, take_keys
from jobs.queue.hidden_parts import renewed
from scripts_engine.failures import first_line
from scripts_engine.models import Run, RunStatus, Script, Trigger
from scripts_engine.runs.quota import count_when_committed
from scripts_engine.runs.rows import Row, measured, without_reply

logger = logging.getLogger(__name__)

LOST_AT_ONCE = 100
# With more database errors in one round, they are not the run's fault.
_MAX_DATABASE_ERRORS = 3
_INTERNAL_ERROR = 500


@dataclass(frozen=True, slots=True)
class EndedRun:
    """How a claimed run ended."""

    claimed: Claimed
    run: Run
    columns: dict[str, Any]
    """What is recorded of the outcome, without columns of the call."""
    pushed: Sequence[QueuedRows] = ()
    """What the script put into the queue."""
    is_final: bool = False
    """A failure after which no attempt would end otherwise."""
    retry_after_seconds: float | None = None
    """When the script wants the next attempt."""


def finish(ended: Sequence[EndedRun]) -> None:
    """Commits all of these results, or none. Results of lost leases are discarded.

    In the caller's transaction or one of its own.
    """
    if not ended:
        return
    with transaction.atomic(savepoint=False):
        released = _release([each.claimed for each in ended])
        following: list[QueuedRows] = []
        dead_letters: list[_DeadLetter] = []
        # By the names of the columns, which differ with how the runs ended.
        updates: dict[tuple[str, ...], dict[uuid.UUID, Row]] = defaultdict(dict)
        for each in ended:
            if (each.run.pk, each.claimed.lease_id) in released:
                columns, after = _end(each)
                updates[tuple(columns)][each.run.pk] = columns
                following += after
                if columns["is_dead_letter"]:
                    script = each.claimed.entry.script
                    dead_letters.append(_DeadLetter(script, each.run, columns))
            else:
                _count("discarded")
                logger.warning("Run %s: lease lost, result discarded", each.run.pk)
        for names, rows in updates.items():
            _update_of(names).execute(rows)
        record_all(following)
        run_leases = [each.claimed.run_lease_id for each in ended if each.claimed.run_lease_id]
        if run_leases:
            RunLease.objects.filter(pk__in=run_leases).delete()
        _alert(dead_letters)


class _DeadLetter(NamedTuple):
    script: Script
    run: Run
    columns: Row
    """How it ended."""


def _alert(dead_letters: Sequence[_DeadLetter]) -> None:
    """Tells of them, last in the transaction, because others wait for what an alert locks."""
    # In one order everywhere, or two transactions could wait for each other.
    for script, run, columns in sorted(dead_letters, key=lambda each: each.script.pk):
        if not run.is_of_alert:
            error = first_line(columns["error_message"], columns["status"])
            alert(JobAlert.DEAD_LETTER, script, run=run.pk, attempts=run.attempt, error=error)


def _count(outcome: str, *, is_dead_letter: bool = False) -> None:
    """Once it is committed: what is rolled back is tried again."""
    transaction.on_commit(ATTEMPTS.labels(outcome).inc)
    if is_dead_letter or outcome == "dead-letter":
        transaction.on_commit(DEAD_LETTERS.inc)


def _end(ended: EndedRun) -> tuple[Row, Sequence[QueuedRows]]:
    """What is recorded of the run's end, and what follows from it. Takes the keys of that."""
    run, columns = ended.run, _columns_with_keys(ended)
    following: Sequence[QueuedRows] = ()
    is_dead_letter = None
    if columns["status"] == RunStatus.SUCCEEDED:
        _count("succeeded")
        following = ended.pushed
    else:
        after = follow(
            run,
            ended.claimed.entry,
            is_final=ended.is_final,
            after_seconds=ended.retry_after_seconds,
        )
        following = () if after is None else (after,)
        is_dead_letter = _is_dead_letter(run, after)
        _count(_AFTER_FAILURE[is_dead_letter])
    more = columns["payload_bytes"] - run.payload_bytes
    count_when_committed(run.organisation_id, more)
    recorded = {**columns, "is_dead_letter": is_dead_letter, "ended_in": THIS_COMMIT}
    return recorded, following


# By whether it is a dead letter.
_AFTER_FAILURE = {None: "retried", True: "dead-letter", False: "given-up"}


def _is_dead_letter(run: Run, after: QueuedRows | None) -> bool | None:
    """``None`` if another attempt follows. Never for a test event, whose sender sees the result."""
    return None if after is not None else run.trigger != Trigger.TEST


def _columns_with_keys(ended: EndedRun) -> dict[str, Any]:
    """Takes the keys of what was pushed. The run has failed if another run was first."""
    if ended.columns["status"] != RunStatus.SUCCEEDED:
        return ended.columns
    try:
        take_keys(ended.pushed)
    except KeyTakenError as error:
        free_keys(ended.run.pk, [digest_of(each) for each in ended.pushed if each.key])
        return without_reply(ended.columns, str(error))
    return ended.columns


@cache
def _update_of(names: tuple[str, ...]) -> CompiledUpdate:
    return CompiledUpdate(Run, names)


def _release(claimed: Sequence[Claimed]) -> set[tuple[uuid.UUID, uuid.UUID]]:
    """Deletes the entries that these leases still have. Returns the ids of runs and leases."""
    value = partial(column_value, QueueEntry)
    table = connection.ops.quote_name(QueueEntry._meta.db_table)
    pairs = " OR ".join(["(run_id = %s AND lease_id = %s)"] * len(claimed))
    given = [
        each
        for one in claimed
        for each in (value("run", one.run_id), value("lease_id", one.lease_id))
    ]
    with connection.cursor() as cursor:
        # The name comes from the model.
        statement = f"DELETE FROM {table} WHERE {pairs} RETURNING run_id, lease_id"  # noqa: S608
        cursor.execute(statement, given)
        return {(as_uuid(run_id), as_uuid(lease_id)) for run_id, lease_id in cursor.fetchall()}


def give_back(claimed: Sequence[Claimed], *, delay_seconds: float = 0.0) -> None:
    """Puts runs back that did not start: due after the delay, or without one as before."""
    columns: dict[str, Any] = {"lease_id": None, "lease_ends_at": None}
    if delay_seconds:
        columns["due_at"] = timezone.now() + timedelta(seconds=delay_seconds)
    with transaction.atomic():
        for each in claimed:
            entry = QueueEntry.objects.filter(pk=each.run_id, lease_id=each.lease_id)
            if entry.update(**columns):
                Run.objects.filter(pk=each.run_id).update(status=RunStatus.QUEUED)
    for each in claimed:
        if each.run_lease_id is not None:
            give_back_lease(each.run_lease_id)


def end_lost_runs() -> int:
    """Ends runs whose lease is over as ``Lost``; what they did may be done again. Returns how many.

    Any number of runners may call it at once. Raises ``DatabaseUnavailable`` if several runs meet
    it: a single one does not hold up the others.
    """
    now = timezone.now()
    is_over = Q(lease_ends_at__lte=now) | Q(lease_ends_at__gt=now + MAX_LEASE)
    over = QueueEntry.objects.leased().filter(is_over).order_by("lease_ends_at")
    count, errors = 0, 0
    for run_id, lease_id in list(over.values_list("pk", "lease_id")[:LOST_AT_ONCE]):
        if lease_id is None:
            continue
        try:
            count += end_as_lost(run_id, lease_id)
        except DatabaseUnavailable as error:
            errors += 1
            text = " ".join(str(error).split())
            logger.error("Run %s is not ended as lost yet: %s", run_id, text)  # noqa: TRY400
            if errors >= _MAX_DATABASE_ERRORS:
                raise
    return count


def end_as_lost(run_id: uuid.UUID, lease_id: uuid.UUID) -> bool:
    """Ends the run as ``Lost`` if that lease still has it.

    If its next attempt cannot be stored, there is none; if even that fails, the run is left to the
    next one who looks. One run must not stop the queue for all.
    """
    for is_final in (False, True):
        try:
            return _end_as_lost(run_id, lease_id, is_final=is_final)
        except DatabaseUnavailable:
            raise
        except Exception:
            logger.exception("Run %s cannot be ended as lost", run_id)
    return False


@transaction.atomic
def _end_as_lost(run_id: uuid.UUID, lease_id: uuid.UUID, *, is_final: bool) -> bool:
    locked = QueueEntry.objects.select_for_update(skip_locked=True, of=("self",))
    entry = locked.select_related("script").filter(pk=run_id, lease_id=lease_id).first()
    if entry is None:
        return False
    run = Run.objects.get(pk=run_id)
    entry.delete()
    after = follow(run, entry, is_final=is_final or entry.script.deleted_at is not None)
    columns = {
        "status": RunStatus.LOST.value,
        "ended_in": THIS_COMMIT,
        "response_status": _INTERNAL_ERROR,
        "duration_ms": max(0.0, (timezone.now() - run.started_at).total_seconds() * 1000),
        "error_message": "The runner that had this run was lost before it ended.",
        "is_dead_letter": _is_dead_letter(run, after),
    }
    Run.objects.filter(pk=run_id).update(**columns)
    _count("lost", is_dead_letter=bool(columns["is_dead_letter"]))
    logger.warning("Run %s was lost; %s", run_id, "given up" if after is None else "runs again")
    if after is not None:
        record_all([after])
    elif columns["is_dead_letter"]:
        _alert([_DeadLetter(entry.script, run, columns)])
    return True


# --- What follows an attempt ----------------------------------------------------------------------

# Of runs; the last one repeats.
DELAYS_SECONDS = (10, 40, 160, 640, 2560, 3600)

# Taken over from the attempt before. The payload stays with the first one.
_SHARED = (
    "organisation_id",
    "script_id",
    "script_version_id",
    "is_draft",
    "hook_id",
    "trigger",
    "started_by_id",
    "started_with_id",
    "request_method",
    "request_query",
    "request_path",
    "request_headers",
    "client_address",
    "sender",
    "verified",
    "event_id",
    "pushed_by_id",
    "replay_of_id",
    "chain_depth",
    "schedule_id",
    "scheduled_at",
    "is_of_alert",
)


def backoff(attempt: int, delays: Sequence[float] = DELAYS_SECONDS) -> float:
    """Seconds until the attempt after that one; half of the delay is random."""
    delay = delays[min(attempt, len(delays)) - 1]
    return delay / 2 + random.uniform(0, delay / 2)  # noqa: S311  (nothing to guess)


def next_attempt(run: Run, entry: QueueEntry, due_at: datetime) -> QueuedRows:
    """The rows of the attempt after ``run``."""
    row: dict[str, Any] = {name: getattr(run, name) for name in _SHARED}
    row |= {
        "id": uuid7(),
        "status": RunStatus.QUEUED.value,
        "started_at": timezone.now(),
        "queued_ms": 0.0,
        "duration_ms": 0.0,
        "cpu_ms": 0.0,
        "unsaved_source": "",
        "request_body": b"",
        "response_status": HTTPStatus.ACCEPTED.value,
        "response_headers": [],
        "response_body": b"",
        "logs": [],
        "host_calls": [],
        "error_message": "",
        "error_line": None,
        "error_traceback": "",
        "payload_removed_at": None,
        "ended_in": None,
        "attempt": entry.attempt + 1,
        "first_run_id": run.first_attempt_id,
        "is_dead_letter": None,
    }
    rows = measured(row) | {"request_bytes": run.request_bytes}
    hidden = entry.hidden_ciphertext
    following = entry_row(
        row,
        payload_of=entry.payload_of,
        due_at=due_at,
        max_attempts=entry.max_attempts,
        # The entry may have been read before its parts moved to another pepper.
        hidden_ciphertext=renewed(None if hidden is None else bytes(hidden), entry.payload_of),
    )
    return QueuedRows(rows, following)


def follow(
    run: Run, entry: QueueEntry, *, is_final: bool = False, after_seconds: float | None = None
) -> QueuedRows | None:
    """The rows of the next attempt; ``None`` if there is none, so the failed run is a dead letter.

    ``after_seconds`` is what the script asked for; by default the delay grows.
    """
    if is_final or entry.attempt >= entry.max_attempts:
        return None
    delay = backoff(entry.attempt) if after_seconds is None else after_seconds
    return next_attempt(run, entry, timezone.now() + timedelta(seconds=delay))
