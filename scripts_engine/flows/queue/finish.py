"""Ends attempts: the run as it ended, and what follows from it, in one transaction.

Whoever deletes the entry under its lease ends the run. So a result that comes after its lease was
given to others finds no entry, and is discarded.
"""

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from typing import Any

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from core.database.compiled_query import CompiledUpdate, column_value
from core.database.ids import as_uuid
from core.database.unavailable import DatabaseUnavailable
from core.metrics.catalogue import ATTEMPTS, DEAD_LETTERS
from scripts_engine.flows.concurrent_runs import give_back_lease
from scripts_engine.flows.queue.attempts import follow
from scripts_engine.flows.queue.claim import Claimed
from scripts_engine.flows.queue.enqueue import QueuedRows, digest_of, record_all, take_keys
from scripts_engine.flows.queue.keys import KeyTakenError, free_keys
from scripts_engine.flows.run_payloads import without_reply
from scripts_engine.flows.run_quota import count_when_committed
from scripts_engine.models import QueueEntry, Run, RunLease, RunStatus

logger = logging.getLogger(__name__)

# A lease that ends later than any new one could is from before the clock was set back.
MAX_LEASE = timedelta(minutes=2)
LOST_AT_ONCE = 100
# With more database errors in one round, they are not the run's fault.
_MAX_DATABASE_ERRORS = 3
_INTERNAL_ERROR = 500


@dataclass(frozen=True, slots=True)
class Ended:
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


def finish(ended: Sequence[Ended]) -> None:
    """Commits all of these results, or none. Results of lost leases are discarded.

    In the caller's transaction or one of its own.
    """
    if not ended:
        return
    with transaction.atomic(savepoint=False):
        released = _release([each.claimed for each in ended])
        following: list[QueuedRows] = []
        for each in ended:
            if (each.run.pk, each.claimed.lease_id) in released:
                following += _end(each)
            else:
                _count("discarded")
                logger.warning("Run %s: lease lost, result discarded", each.run.pk)
        record_all(following)
        run_leases = [each.claimed.run_lease_id for each in ended if each.claimed.run_lease_id]
        if run_leases:
            RunLease.objects.filter(pk__in=run_leases).delete()


def _count(outcome: str, *, is_dead_letter: bool = False) -> None:
    """Once it is committed: what is rolled back is tried again."""
    transaction.on_commit(ATTEMPTS.labels(outcome).inc)
    if is_dead_letter or outcome == "dead-letter":
        transaction.on_commit(DEAD_LETTERS.inc)


def _end(ended: Ended) -> Sequence[QueuedRows]:
    """Records how the run ended. Returns what follows from it."""
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
        is_dead_letter = True if after is None else None
        _count("dead-letter" if after is None else "retried")
    update = _update_of(("is_dead_letter", *columns))
    update.execute([run.pk], {**columns, "is_dead_letter": is_dead_letter})
    more = columns["payload_bytes"] - run.payload_bytes
    count_when_committed(run.organisation_id, more)
    return following


def _columns_with_keys(ended: Ended) -> dict[str, Any]:
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
    Run.objects.filter(pk=run_id).update(
        status=RunStatus.LOST,
        response_status=_INTERNAL_ERROR,
        duration_ms=max(0.0, (timezone.now() - run.started_at).total_seconds() * 1000),
        error_message="The runner that had this run was lost before it ended.",
        is_dead_letter=True if after is None else None,
    )
    _count("lost", is_dead_letter=after is None)
    logger.warning("Run %s was lost; %s", run_id, "given up" if after is None else "runs again")
    if after is not None:
        record_all([after])
    return True
