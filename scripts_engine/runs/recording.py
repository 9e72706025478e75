"""Commits runs before their callers are answered.

By group commit: runs that threads record at the same time share one INSERT.
"""

import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    IntegrityError,
    close_old_connections,
    connection,
    connections,
    transaction,
)

from core.database.compiled_query import CompiledInsert
from core.database.unavailable import DatabaseUnavailable
from core.waiting import WakeUp, give_way, in_thread
from scripts_engine.models import Run
from scripts_engine.runs.quota import count_when_committed
from scripts_engine.runs.rows import Row

logger = logging.getLogger(__name__)

# Runs of at least this size are not grouped with those of other organisations.
LARGE_BYTES = 256 * 1024
# A group ends with the run that brings it to this size.
GROUP_BYTES = 1024 * 1024
# Raised by databases and drivers for content that they cannot store, such as numbers out of range.
_CONTENT_ERRORS = (DatabaseError, ValueError, OverflowError, TypeError)
# Columns that hold no content: ids, status, times and sizes.
_OUTLINE_COLUMNS = (
    "id",
    "organisation_id",
    "script_id",
    "script_version_id",
    "is_draft",
    "hook_id",
    "trigger",
    "started_by_id",
    "started_with_id",
    "status",
    "sender",
    "verified",
    "started_at",
    "queued_ms",
    "duration_ms",
    "cpu_ms",
    "response_status",
    "request_bytes",
    "response_bytes",
    "attempt",
    "first_run_id",
    "pushed_by_id",
    "replay_of_id",
    "chain_depth",
    "is_dead_letter",
    "schedule_id",
    "scheduled_at",
    "is_of_alert",
    "ended_in",
)
_NO_CONTENT: dict[str, Any] = {
    "event_id": None,
    "unsaved_source": "",
    "request_method": "",
    "request_query": "",
    "request_path": "",
    "request_headers": [],
    "request_body": b"",
    "client_address": None,
    "response_headers": [],
    "response_body": b"",
    "logs": [],
    "host_calls": [],
    "error_message": (
        "The rest of this run could not be stored: the database refused its content."
    ),
    "error_line": None,
    "error_traceback": "",
    "payload_bytes": 0,
    "payload_removed_at": None,
}
_insert = CompiledInsert(Run)


class Companion(NamedTuple):
    """A row that is committed with a run, in the same group; all are of one table."""

    insert: CompiledInsert
    row: Row


class RunNotRecordedError(DatabaseUnavailable):
    """The script ran, but the database did not store its run."""


class RunNotQueuedError(DatabaseUnavailable):
    """The database did not store the queued run, so nothing will run."""


def record_run(row: Row) -> None:
    """Commits the run before returning, or stores it in the caller's transaction.

    Retries once after a lost connection; the id keeps the run unique. If the database refuses the
    content, stores an outline without it. Raises ``RunNotRecordedError``.
    """
    _record(row, None)


def record_queued(row: Row, companion: Companion) -> None:
    """Commits a queued run and its companion, like ``record_run``, but never an outline.

    Raises ``RunNotQueuedError``.
    """
    _record(row, companion)


def record_together(row: Row, effects: Sequence[Callable[[], None]], *, size: int) -> None:
    """Commits the run and what the functions store in the same transaction, or nothing.

    ``size`` is that of the rest, in bytes. Raises ``RunNotRecordedError``.
    """

    def record() -> None:
        with transaction.atomic():
            _record_alone(row, None)
            for store in effects:
                store()

    try:
        is_large = row["payload_bytes"] + size >= LARGE_BYTES
        if is_large and not connection.in_atomic_block:
            in_thread(record)
        else:
            record()
    except DatabaseUnavailable as error:
        raise _not_stored(row, None, error) from error
    count_when_committed(row["organisation_id"], row["payload_bytes"])


def _record(row: Row, companion: Companion | None) -> None:
    # One look-up: the proxy ``connection`` makes one for each attribute.
    database = connections[DEFAULT_DB_ALIAS]
    if database.in_atomic_block:
        _record_alone(row, companion)
    else:
        has_row_locks = database.features.has_select_for_update
        group_key = _group_key(row, has_row_locks=has_row_locks)
        record = partial(_record_in_group, row, companion, group_key)
        if row["payload_bytes"] >= LARGE_BYTES:
            # Storing it takes as long as serving several small requests.
            in_thread(record)
        else:
            record()
    count_when_committed(row["organisation_id"], row["payload_bytes"])


def _record_in_group(row: Row, companion: Companion | None, group_key: Hashable) -> None:
    pending = _group_commit.commit(row, companion, group_key=group_key)
    if pending.failure is None:
        return
    if not isinstance(pending.failure, DatabaseUnavailable):
        # Another run of the group may be the reason.
        _record_alone(row, companion)
    elif pending.was_connection_lost:
        _record_again(row, companion)
    else:
        raise _not_stored(row, companion, pending.failure) from pending.failure


def _group_key(row: Row, *, has_row_locks: bool) -> Hashable:
    """Runs with the same key may be committed together, and so wait for each other.

    Large runs delay only runs of their own organisation. On a database with row locks the same is
    true of all runs, because the INSERT may wait for a script's row that a change has locked.
    """
    is_large = row["payload_bytes"] >= LARGE_BYTES
    return row["organisation_id"] if is_large or has_row_locks else None, is_large


class _PendingRun:
    """A run in the queue, with the result for the thread that waits for it."""

    __slots__ = ("companion", "failure", "is_leader", "row", "wake_up", "was_connection_lost")

    def __init__(self, row: Row, companion: Companion | None) -> None:
        self.row = row
        self.companion = companion
        # Default result: a BaseException may stop the leader before it reports.
        self.failure: Exception | None = DatabaseUnavailable("the commit was given up")
        self.was_connection_lost = False
        self.is_leader = False
        # Set when the run is committed, or its thread becomes the leader.
        self.wake_up = WakeUp()


class _GroupCommit:
    """Commits in one statement the runs that arrived during the previous commit.

    The first thread to arrive is the leader: it commits the next group of its key, then passes the
    leadership to the first thread still waiting. Without concurrency, no thread waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By group key; a key is present while it has a leader.
        self._waiting: dict[Hashable, list[_PendingRun]] = {}

    def commit(self, row: Row, companion: Companion | None, *, group_key: Hashable) -> _PendingRun:
        """Returns when the run's group is committed, or has failed."""
        pending = _PendingRun(row, companion)
        with self._lock:
            waiting = self._waiting.get(group_key)
            if waiting is None:
                pending.is_leader = True
                waiting = self._waiting[group_key] = []
            waiting.append(pending)
        if not pending.is_leader:
            pending.wake_up.wait()
        # Now the run is committed, or this thread is the leader.
        if pending.is_leader:
            self._lead(group_key)
        return pending

    def _lead(self, group_key: Hashable) -> None:
        # Green threads whose runs have ended meanwhile join the group.
        give_way()
        with self._lock:
            group, self._waiting[group_key] = _split_group(self._waiting[group_key])
        try:
            _commit_group(group)
        finally:
            self._pass_leadership(group_key)
            for pending in group:
                pending.wake_up.set()

    def _pass_leadership(self, group_key: Hashable) -> None:
        with self._lock:
            waiting = self._waiting[group_key]
            successor = waiting[0] if waiting else None
            if successor is None:
                del self._waiting[group_key]
        if successor is not None:
            successor.is_leader = True
            successor.wake_up.set()


_group_commit = _GroupCommit()


def _split_group(waiting: list[_PendingRun]) -> tuple[list[_PendingRun], list[_PendingRun]]:
    """The next group, and the runs that keep waiting."""
    size = 0
    for count, pending in enumerate(waiting, 1):
        size += pending.row["payload_bytes"]
        if size >= GROUP_BYTES:
            return waiting[:count], waiting[count:]
    return waiting, []


def _commit_group(group: Sequence[_PendingRun]) -> None:
    failure: Exception | None = None
    was_connection_lost = False
    try:
        _insert_all(
            [pending.row for pending in group],
            [pending.companion for pending in group if pending.companion is not None],
        )
    except Exception as error:  # noqa: BLE001 (each thread handles its own)
        failure = error
        close_old_connections()
        was_connection_lost = connection.connection is None
    for pending in group:
        pending.failure, pending.was_connection_lost = failure, was_connection_lost


def _insert_all(rows: Sequence[Row], companions: Sequence[Companion]) -> None:
    if companions:
        insert = companions[0].insert
        _insert.execute_with(rows, insert, [companion.row for companion in companions])
    else:
        _insert.execute(rows)


def _record_again(row: Row, companion: Companion | None) -> None:
    # This thread's connection dates from before the script ran: the failure that cost the leader
    # its connection has probably cut this one too.
    connection.close()
    try:
        _record_alone(row, companion)
    except IntegrityError:
        # The first attempt was committed and only its answer was lost; otherwise this raises.
        Run.objects.only("id").get(pk=row["id"])


def _record_alone(row: Row, companion: Companion | None) -> None:
    try:
        _insert_alone(row, companion)
    except DatabaseUnavailable as error:
        raise _not_stored(row, companion, error) from error
    except _CONTENT_ERRORS as error:
        if companion is not None:
            raise
        _record_outline(row, error)


def _record_outline(row: Row, refusal: Exception) -> None:
    """Records that the script ran, and so may have had effects, without the refused content.

    Raises the refusal if the content was not the reason: if the id is already taken, for example,
    or the script was deleted in the meantime.
    """
    try:
        _insert_alone({name: row[name] for name in _OUTLINE_COLUMNS} | _NO_CONTENT, None)
    except DatabaseUnavailable as error:
        raise _not_stored(row, None, error) from error
    except _CONTENT_ERRORS:
        raise refusal from None
    logger.error("Run %s is recorded without its content: %s", row["id"], type(refusal).__name__)


def _insert_alone(row: Row, companion: Companion | None) -> None:
    companions = () if companion is None else (companion,)
    if not connection.in_atomic_block:
        _insert_all([row], companions)
        return
    # A savepoint: on PostgreSQL, a refused statement would abort the caller's transaction.
    with transaction.atomic():
        _insert_all([row], companions)


def _not_stored(row: Row, companion: Companion | None, error: Exception) -> DatabaseUnavailable:
    kind = RunNotRecordedError if companion is None else RunNotQueuedError
    return kind(f"run {row['id']}: {error}")
