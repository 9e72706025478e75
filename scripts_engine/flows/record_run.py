"""A run is committed: with those of other threads, where they come at the same time."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import (
    DatabaseError,
    IntegrityError,
    OperationalError,
    close_old_connections,
    connection,
    transaction,
)

from core.database.compiled_query import CompiledInsert
from core.http.unavailable import DATABASE_ERRORS
from scripts_engine.flows.run_quota import count_recorded
from scripts_engine.models import Run

logger = logging.getLogger(__name__)

# The values of a Run by the names of its columns.
Row = Mapping[str, Any]

_insert = CompiledInsert(Run)

# A run from this size on is not committed together with those of other organisations.
LARGE_BYTES = 256 * 1024
# What is committed at once: one run at least, and no more once they are this large together.
GROUP_BYTES = 1024 * 1024

# How a database and its driver refuse what they cannot hold: a number out of range, a text that
# they have no form for.
_CONTENT_ERRORS = (DatabaseError, ValueError, OverflowError, TypeError)
_OUTLINE = (
    "id",
    "organisation_id",
    "script_id",
    "script_version_id",
    "hook_id",
    "trigger",
    "started_by_id",
    "started_with_id",
    "status",
    "started_at",
    "queued_ms",
    "duration_ms",
    "response_status",
    "request_bytes",
    "response_bytes",
)
_NOT_STORED = "The rest of this run could not be stored: the database refused its content."


class RunNotRecordedError(OperationalError):
    """The script ran, but the database did not take its run."""


def record_run(row: Row) -> None:
    """Commits the run before it returns; in a transaction of the caller's, with that one.

    Once more where the connection was lost meanwhile; the id keeps it one run. Where the database
    refuses the content, an outline of the run without it. Raises ``RunNotRecordedError``.
    """
    _commit(row)
    count_recorded(row["organisation_id"], row["payload_bytes"])


def _commit(row: Row) -> None:
    if connection.in_atomic_block:
        _record_alone(row)
        return
    entry = _queue.commit(row, beside=_what_it_may_wait_for(row))
    if entry.failure is None:
        return
    if not isinstance(entry.failure, DATABASE_ERRORS):
        # Of several runs one may have spoilt it for all.
        _record_alone(row)
    elif entry.was_connection_lost:
        _record_again(row)
    else:
        raise _not_recorded(row, entry.failure) from entry.failure


def _what_it_may_wait_for(row: Row) -> Any:
    """Large runs hold up those of their organisation only; and where rows are locked, so does a
    change of a script.
    """
    is_large = row["payload_bytes"] >= LARGE_BYTES
    is_apart = is_large or connection.features.has_select_for_update
    return row["organisation_id"] if is_apart else None, is_large


def _record_alone(row: Row) -> None:
    try:
        _insert_alone(row)
    except DATABASE_ERRORS as error:
        raise _not_recorded(row, error) from error
    except _CONTENT_ERRORS as error:
        _record_outline(row, error)


def _record_outline(row: Row, refusal: Exception) -> None:
    """The script had its effects: there is a record of them, if not of all that it showed.

    Raises the refusal when it was not for the content: of an id that is there already, or of a
    script that was deleted meanwhile.
    """
    try:
        _insert_alone(_outline_of(row))
    except DATABASE_ERRORS as error:
        raise _not_recorded(row, error) from error
    except _CONTENT_ERRORS:
        raise refusal from None
    logger.error("Run %s is recorded without its content: %s", row["id"], type(refusal).__name__)


def _outline_of(row: Row) -> Row:
    """What comes from Moonhook itself: ids, status, times."""
    return {
        **{name: row[name] for name in _OUTLINE},
        "unsaved_source": "",
        "request_method": "",
        "request_query": "",
        "request_headers": [],
        "request_body": b"",
        "client_address": None,
        "response_headers": [],
        "response_body": b"",
        "logs": [],
        "host_calls": [],
        "error_message": _NOT_STORED,
        "error_line": None,
        "error_traceback": "",
        "payload_bytes": 0,
        "payload_removed_at": None,
    }


def _insert_alone(row: Row) -> None:
    if not connection.in_atomic_block:
        _insert.execute([row])
        return
    # PostgreSQL would end the caller's transaction with a statement that it refuses.
    with transaction.atomic():
        _insert.execute([row])


def _record_again(row: Row) -> None:
    # This thread's own, opened before the script ran, went the way of the leader's.
    connection.close()
    try:
        _record_alone(row)
    except IntegrityError:
        # The first time was committed, only its answer was lost; else this raises.
        Run.objects.only("id").get(pk=row["id"])


def _not_recorded(row: Row, error: Exception) -> RunNotRecordedError:
    return RunNotRecordedError(f"run {row['id']}: {error}")


class _Entry:
    """A run that waits to be committed, and the thread that waits with it."""

    __slots__ = ("failure", "is_leader", "row", "turn", "was_connection_lost")

    def __init__(self, row: Row) -> None:
        self.row = row
        # Until it is told otherwise: whoever leads may be stopped by what is no Exception.
        self.failure: Exception | None = OperationalError("the commit was given up")
        self.was_connection_lost = False
        self.is_leader = False
        # Taken until there is something to tell the thread.
        self.turn = threading.Lock()
        self.turn.acquire()


class _CommitQueue:
    """Commits in one statement what has come while the last one was under way.

    Whoever finds nobody at it leads: commits all that wait, and hands on to the first of those
    that have come meanwhile. A thread that is alone waits for nobody.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By what they have in common. It is there while somebody leads.
        self._waiting: dict[Any, list[_Entry]] = {}

    def commit(self, row: Row, *, beside: Any) -> _Entry:
        """``beside`` is what the runs that are committed together have in common."""
        entry = _Entry(row)
        with self._lock:
            waiting = self._waiting.get(beside)
            if waiting is None:
                entry.is_leader = True
                waiting = self._waiting[beside] = []
            waiting.append(entry)
        if not entry.is_leader:
            entry.turn.acquire()
        # By then it is committed, or has become the leader.
        if entry.is_leader:
            self._lead(beside)
        return entry

    def _lead(self, beside: Any) -> None:
        with self._lock:
            group, self._waiting[beside] = _first_group(self._waiting[beside])
        try:
            _commit_group(group)
        finally:
            self._hand_on(beside)
            for entry in group:
                entry.turn.release()

    def _hand_on(self, beside: Any) -> None:
        with self._lock:
            waiting = self._waiting[beside]
            successor = waiting[0] if waiting else None
            if successor is None:
                del self._waiting[beside]
        if successor is not None:
            successor.is_leader = True
            successor.turn.release()


def _first_group(waiting: list[_Entry]) -> tuple[list[_Entry], list[_Entry]]:
    """Those that are committed next, and those that wait on."""
    size = 0
    for count, entry in enumerate(waiting, 1):
        size += entry.row["payload_bytes"]
        if size >= GROUP_BYTES:
            return waiting[:count], waiting[count:]
    return waiting, []


def _commit_group(group: Sequence[_Entry]) -> None:
    failure: Exception | None = None
    was_connection_lost = False
    try:
        _insert.execute([entry.row for entry in group])
    except Exception as error:  # noqa: BLE001 (each thread raises its own)
        failure = error
        close_old_connections()
        was_connection_lost = connection.connection is None
    for entry in group:
        entry.failure, entry.was_connection_lost = failure, was_connection_lost


_queue = _CommitQueue()
