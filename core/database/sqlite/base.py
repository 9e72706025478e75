"""The database backend for ``ENGINE``: queued writes, retries, deadlines and checkpoints."""

import logging
import math
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any

from django.db import DatabaseError, connections
from django.db.backends.sqlite3 import base

from core import waiting
from core.database.sqlite.disk_space import RETURN_FREE_PAGES
from core.database.sqlite.write_queue import WriteQueue, write_queue_of
from core.database.unavailable import UnavailabilityWrapper

# In rows. A row with its index entries writes about nine pages.
CHANGES_BETWEEN = 100
# The WAL's pages at which a commit of a green thread runs the checkpoint after all.
GREEN_PAGES = 8000

logger = logging.getLogger(__name__)

_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
# Instructions of SQLite's virtual machine between two checks of the deadline: about a millisecond.
_INSTRUCTIONS_PER_CHECK = 50_000
# SQLite's pauses between attempts at a lock grow to 100 ms. A short timeout keeps them at a
# millisecond or two; ``Cursor`` retries until ``lock_timeout_seconds`` have passed.
_BUSY_TIMEOUT_MS = 5
# SQLite would hold up the other green threads, so ``Cursor`` pauses there.
_GREEN_PAUSE_SECONDS = 0.001


class Checkpoints:
    """Starts a checkpoint in a thread after enough changes of this process's green threads.

    By default, a commit that finds a thousand pages in the WAL copies them into the database. All
    green threads would wait for that, after every hundredth call or so. Writers do not wait for a
    checkpoint of another connection (https://www.sqlite.org/wal.html#concurrency).
    """

    def __init__(self) -> None:
        self._changes = 0
        self._is_started = False

    def note(self, alias: str, changes: int) -> None:
        """Adds the number of rows that a commit changed. Only in a green thread."""
        self._changes += changes
        if self._changes >= CHANGES_BETWEEN and not self._is_started:
            self._changes, self._is_started = 0, True
            try:
                waiting.start_in_thread(partial(self._run, alias))
            except RuntimeError:
                # The process is stopping, and its threads have ended.
                self._is_started = False

    def _run(self, alias: str) -> None:
        try:
            with connections[alias].cursor() as cursor:
                # PASSIVE copies what it can without making others wait.
                cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except DatabaseError as error:
            logger.warning("Checkpoint failed, a later commit retries it: %s", error)
        finally:
            self._is_started = False


checkpoints = Checkpoints()


class Cursor(base.SQLiteCursorWrapper):
    """Queues writes, retries statements that find a lock, and caches converted placeholders."""

    database: "DatabaseWrapper"
    # The remaining rows that a write outside a transaction returned.
    _returned: Iterator[Any] | None = None

    def execute(self, query: str, params: Any = None) -> Any:
        self._returned = None
        with_retry = self.database.execute_with_retry
        if self.connection.in_transaction:
            return super().execute(query, params)
        if not _is_write(query):
            return with_retry(super().execute, query, params)
        # The write is a transaction of its own.
        try:
            self.database.begin_turn(_kind_of(query))
            with_retry(super().execute, query, params)
            if self.description is not None:
                # With RETURNING, SQLite commits when the last row is fetched.
                self._returned = iter(super().fetchall())
            return self
        finally:
            self.database.end_turn()

    def fetchone(self) -> Any:
        return super().fetchone() if self._returned is None else next(self._returned, None)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        size = self.arraysize if size is None else size
        if self._returned is None:
            return super().fetchmany(size)
        return list(islice(self._returned, size))

    def fetchall(self) -> list[Any]:
        return super().fetchall() if self._returned is None else list(self._returned)

    def __next__(self) -> Any:
        return super().__next__() if self._returned is None else next(self._returned)

    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        if param_names is not None:
            return super().convert_query(query, param_names=param_names)
        return _with_question_marks(query)


@lru_cache(maxsize=1024)
def _with_question_marks(query: str) -> str:
    """Django's conversion, cached: 12 µs for an INSERT of many columns, a tenth of its time."""
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


def _is_write(query: str) -> bool:
    return query.lstrip().startswith(_WRITES)


@lru_cache(maxsize=1024)
def _kind_of(query: str) -> str:
    """The table of a write: the first quoted name."""
    parts = query.split('"', 2)
    return parts[1] if len(parts) > 2 else ""


def _is_new(path: str) -> bool:
    with suppress(OSError):
        return os.stat(path).st_size == 0  # noqa: PTH116  (called for each connection)
    return False


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


class DatabaseWrapper(base.DatabaseWrapper):
    # How long a statement waits for a lock; set by the option ``timeout``.
    lock_timeout_seconds = 5.0
    # Statements for a new connection; Django's own attribute.
    init_commands: list[str]
    # Set while this connection has a turn in the queue.
    _queue: WriteQueue | None = None
    # Set while a deadline of ``statements_end_by`` spares writes.
    _lift: Callable[[], None] | None = None
    # The number of changed rows that ``checkpoints`` has counted for this connection.
    _noted_changes = 0

    @cached_property
    def wrap_database_errors(self) -> UnavailabilityWrapper:
        return UnavailabilityWrapper(self)

    def get_connection_params(self) -> dict[str, Any]:
        """Disables the converters of ``sqlite3``, which it looks up for each column of a result.

        Django's fields convert their values themselves. Raw statements return SQLite's own types.
        """
        return super().get_connection_params() | {"detect_types": 0}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect; a missing database file is created first, with access for its owner only.

        SQLite gives its -wal and -shm files the mode of the database. The file is not opened here,
        because closing it would release the locks of all other connections of this process
        (fcntl(2)). Another process would then believe that it is alone and delete the -wal file
        with the data that these connections write.
        """
        path = str(conn_params["database"])
        if path != ":memory:" and not path.startswith("file:"):
            # If this fails, SQLite fails too and reports the reason.
            with suppress(OSError):
                os.mknod(path, stat.S_IFREG | 0o600)
            if _is_new(path):
                self.init_commands.insert(0, RETURN_FREE_PAGES)
        connection = super().get_new_connection(conn_params)
        self.lock_timeout_seconds = conn_params.get("timeout", self.lock_timeout_seconds)
        is_green = waiting.current() is not None
        connection.execute(f"PRAGMA busy_timeout = {0 if is_green else _BUSY_TIMEOUT_MS}")
        if is_green:
            connection.execute(f"PRAGMA wal_autocheckpoint = {GREEN_PAGES}")
        self._noted_changes = 0
        return connection

    def create_cursor(self, name: str | None = None) -> Cursor:
        cursor: Cursor = self.connection.cursor(factory=Cursor)
        cursor.database = self
        return cursor

    def execute_statement(
        self, query: str, params: Sequence[Any], *, is_frequent: bool
    ) -> sqlite3.Cursor:
        """Execute a statement without RETURNING, and without the cost of ``Cursor``.

        SQLite keeps recent statements by itself, whether they are frequent or not.
        """
        self.lift_deadline()
        query = _with_question_marks(query)
        execute = self.connection.execute
        if self.connection.in_transaction:
            return execute(query, params)
        if not _is_write(query):
            return self.execute_with_retry(execute, query, params)
        # The write is a transaction of its own.
        try:
            self.begin_turn(_kind_of(query))
            return self.execute_with_retry(execute, query, params)
        finally:
            self.end_turn()

    def execute_with_retry(
        self, execute: Callable[[str, Any], sqlite3.Cursor], query: str, params: Any
    ) -> sqlite3.Cursor:
        """Retry while another connection has locked the database, until the timeout."""
        deadline = time.monotonic() + self.lock_timeout_seconds
        while True:
            try:
                return execute(query, params)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise
                if waiting.current() is not None:
                    waiting.sleep(_GREEN_PAUSE_SECONDS)

    def lift_deadline(self) -> None:
        """Lift the deadline of ``statements_end_by`` if it spares writes.

        Call it before work with effects outside the database.
        """
        if self._lift is not None:
            self._lift()

    @contextmanager
    def statements_end_by(
        self, deadline: float, *, spares_writes: bool = False
    ) -> Iterator[Callable[[], bool]]:
        """Interrupt statements that run at that time of ``time.monotonic``: OperationalError.

        With ``spares_writes``, the first writing statement lifts the deadline, so that work with
        changes is not interrupted. Yields a function that returns whether the deadline has passed.
        """

        def watched(execute: Any, query: str, *statement: Any) -> Any:
            if spares_writes and _is_write(query):
                lift()
            self.connection.set_progress_handler(is_over, _INSTRUCTIONS_PER_CHECK)
            return execute(query, *statement)

        def is_over() -> bool:
            return time.monotonic() >= deadline

        def lift() -> None:
            nonlocal deadline
            deadline = math.inf

        if spares_writes:
            self._lift = lift
        try:
            with self.execute_wrapper(watched):
                yield is_over
        finally:
            self._lift = None
            if self.connection is not None:
                self.connection.set_progress_handler(None, 0)

    def begin_turn(self, kind: str = "transaction") -> None:
        """Wait for a turn among the writers, at most ``WriteQueue.max_wait_seconds``."""
        if self._queue is not None or self.is_in_memory_db():
            return
        database = self.settings_dict["NAME"]
        if self._may_wait_with_threads():
            queue = write_queue_of(database)
            if queue.begin(kind):
                self._queue = queue
            return
        # Set first, so that the turn ends even if a signal handler raises in begin().
        self._queue = write_queue_of(database, of_main_thread=True)
        if not self._queue.begin():
            self._queue = None

    @staticmethod
    def _may_wait_with_threads() -> bool:
        is_main_thread = threading.get_ident() == threading.main_thread().ident
        return not is_main_thread or waiting.current() is not None

    def end_turn(self) -> None:
        if self._queue is not None:
            try:
                self._queue.end()
            finally:
                self._queue = None
            self._note_changes()

    def _note_changes(self) -> None:
        if self.connection is None or waiting.current() is None:
            return
        # The connection may just have been closed.
        with suppress(sqlite3.ProgrammingError):
            total: int = self.connection.total_changes
            checkpoints.note(self.alias, total - self._noted_changes)
            self._noted_changes = total

    def _start_transaction_under_autocommit(self) -> None:
        try:
            self.begin_turn()
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self.end_turn()
            raise

    def _set_autocommit(self, autocommit: bool) -> None:
        """Called by Django at the end of a transaction, committed or not."""
        try:
            super()._set_autocommit(autocommit)  # type: ignore[misc]
        finally:
            self.end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self.end_turn()
