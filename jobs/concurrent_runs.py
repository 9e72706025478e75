"""Limits how many runs of a hook, and of a script, are in progress on all nodes together.

What counts is leases that have not ended, never a counter: a process that dies leaves nothing that
would have to be given back.
"""

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache, partial
from math import ceil
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Min, Q, QuerySet
from django.utils import timezone
from uuid_utils.compat import uuid7

from core.caches import built_once
from core.database.compiled_query import column_value
from core.database.unavailable import DatabaseUnavailable
from core.http.bulkhead import Bulkhead, BulkheadFullError
from core.http.problems import ProblemCode
from core.waiting import growing_pauses
from jobs.models import RunLease
from jobs.models.queue import MAX_LEASE
from scripts_engine.runs.problems import NotRunError, busy

logger = logging.getLogger(__name__)

WAIT_SECONDS = 1.0
# How much longer than its run a lease lasts at most: for the run's slot, record and reply.
LEASE_MARGIN_SECONDS = 15
# The first key of PostgreSQL's advisory locks; the second is the script's.
_LOCK_CLASS = int.from_bytes(b"runs", "big")

_TAKE = """
    INSERT INTO {leases} (id, hook_id, script_id, ends_at)
    SELECT %(id)s, %(hook)s, %(script)s, %(ends_at)s
    WHERE (SELECT count(*) FROM {leases} WHERE hook_id = %(hook)s
            AND ends_at > %(now)s AND ends_at <= %(latest)s) < %(max_of_hook)s
        AND (SELECT count(*) FROM {leases} WHERE script_id = %(script)s
            AND ends_at > %(now)s AND ends_at <= %(latest)s) < %(max_of_script)s
    RETURNING id
"""
_UNLIMITED = 2**31 - 1


class RunLimitReachedError(NotRunError):
    """As many runs as the hook or its script may have are in progress. Nothing ran."""

    why = busy(ProblemCode.BUSY, "As many runs as allowed are in progress. Nothing ran; try again.")

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(f"too many runs at once; try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class ConcurrencyLimits(NamedTuple):
    """How many runs may be in progress at once; ``None``: unlimited, which costs nothing."""

    hook_id: uuid.UUID | None
    script_id: uuid.UUID
    max_of_hook: int | None
    max_of_script: int | None

    @property
    def are_set(self) -> bool:
        return self.max_of_hook is not None or self.max_of_script is not None


@contextmanager
def run_counted(
    limits: ConcurrencyLimits, *, organisation_id: uuid.UUID, run_seconds: float
) -> Iterator[None]:
    """Counts the block as a run in progress, of at most ``run_seconds``.

    Waits for other runs at most ``WAIT_SECONDS``. Raises ``RunLimitReachedError``.
    """
    if not limits.are_set:
        yield
        return
    lease_id = take_lease(limits, run_seconds=run_seconds)
    if lease_id is None:
        lease_id = _wait_for_lease(limits, organisation_id, run_seconds)
    try:
        yield
    finally:
        give_back_lease(lease_id)


def take_lease(
    limits: ConcurrencyLimits, *, run_seconds: float, waits: bool = True
) -> uuid.UUID | None:
    """Returns the id of a lease, or ``None`` if a limit is reached. Exact under concurrency.

    On PostgreSQL, leases of a script are taken one after the other, until their transactions end.
    With ``waits=False`` the answer is also ``None`` while another transaction takes one.
    """
    lease_id, now = uuid7(), timezone.now()
    moment = partial(column_value, RunLease, "ends_at")
    values = {
        "id": column_value(RunLease, "id", lease_id),
        "hook": column_value(RunLease, "hook_id", limits.hook_id),
        "script": column_value(RunLease, "script", limits.script_id),
        "ends_at": moment(now + timedelta(seconds=run_seconds + LEASE_MARGIN_SECONDS)),
        "now": moment(now),
        "latest": moment(now + MAX_LEASE),
        "max_of_hook": _UNLIMITED if limits.max_of_hook is None else limits.max_of_hook,
        "max_of_script": _UNLIMITED if limits.max_of_script is None else limits.max_of_script,
    }
    if connection.vendor != "postgresql":
        # SQLite has one writer at a time, so the count is still right when the row is inserted.
        return lease_id if _insert(values) else None
    with transaction.atomic():
        is_locked = _lock(limits.script_id, waits=waits)
        return lease_id if is_locked and _insert(values) else None


def is_hook_at_limit(limits: ConcurrencyLimits) -> bool:
    """Whether the hook has as many runs as it may, whatever its script has."""
    if limits.max_of_hook is None:
        return False
    return _live(Q(hook_id=limits.hook_id)).count() >= limits.max_of_hook


def give_back_lease(lease_id: uuid.UUID) -> None:
    """Does not raise if the database is unavailable: the lease ends anyway.

    Not for use in a transaction, which would go on after a failed statement.
    """
    try:
        RunLease.objects.filter(pk=lease_id).delete()
    except DatabaseUnavailable as error:
        logger.warning("Lease %s counts until it ends: %s", lease_id, " ".join(str(error).split()))


def _wait_for_lease(
    limits: ConcurrencyLimits, organisation_id: uuid.UUID, run_seconds: float
) -> uuid.UUID:
    try:
        with waiting_calls().place(str(organisation_id), waits=False):
            for _ in growing_pauses(WAIT_SECONDS):
                lease_id = take_lease(limits, run_seconds=run_seconds)
                if lease_id is not None:
                    return lease_id
    except BulkheadFullError:
        pass
    raise RunLimitReachedError(_seconds_until_one_ends(limits))


def _lock(script_id: uuid.UUID, *, waits: bool) -> bool:
    """Until the transaction ends. The next statement sees what the previous holder committed."""
    function = "pg_advisory_xact_lock" if waits else "pg_try_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, %s)", [_LOCK_CLASS, script_id.int % 2**31])
        return waits or bool(cursor.fetchone()[0])


def _insert(values: dict[str, Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_take_statement(), values)
        return cursor.fetchone() is not None


def _seconds_until_one_ends(limits: ConcurrencyLimits) -> int:
    """By then, one of the runs in progress has ended or reached its time limit."""
    counted = Q(pk__in=[])
    if limits.max_of_hook is not None:
        counted |= Q(hook_id=limits.hook_id)
    if limits.max_of_script is not None:
        counted |= Q(script=limits.script_id)
    first = _live(counted).aggregate(at=Min("ends_at"))["at"]
    if first is None:
        return 1
    return max(1, ceil((first - timezone.now()).total_seconds()) - LEASE_MARGIN_SECONDS)


def _live(counted: Q) -> QuerySet[RunLease]:
    now = timezone.now()
    return RunLease.objects.filter(counted, ends_at__gt=now, ends_at__lte=now + MAX_LEASE)


@cache
def _take_statement() -> str:
    return _TAKE.format(leases=connection.ops.quote_name(RunLease._meta.db_table))


@built_once
def waiting_calls() -> Bulkhead:
    """Places for ``CALLS_WAITING`` calls, at most half of them of one organisation.

    A full bulkhead refuses at once, so that duplicates and calls of a hook at its limit leave the
    other threads to calls that can run.
    """
    places = settings.CALLS_WAITING
    return Bulkhead("calls", limit=places, limit_per_key=max(1, places // 2))
