"""What ``ENGINE`` names."""

import math
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import islice
from typing import Any

from django.db.backends.sqlite3 import base

from core.database.sqlite.writers import Writers, writers_of

_WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
# Instructions of SQLite's virtual machine between two looks at the clock: about a millisecond's.
_INSTRUCTIONS_PER_LOOK = 50_000
# SQLite's own pauses between two tries at a lock grow to 100 ms, while others come and go. It gives
# up after these, in which it has tried every ms or two, and is asked anew.
_BUSY_TIMEOUT_MS = 5


class Cursor(base.SQLiteCursorWrapper):
    """Remembers what became of a statement's placeholders, and writes when it is its turn.

    Django looks through the whole text for each ``%s``, every time: for an INSERT of 29 columns
    that takes as long as the INSERT itself.
    """

    database: "DatabaseWrapper"
    # What is left of the rows that a write outside of transactions returned.
    _returned: Iterator[Any] | None = None

    def execute(self, query: str, params: Any = None) -> Any:
        self._returned = None
        if self.connection.in_transaction:
            return super().execute(query, params)
        if not _is_write(query):
            return self._execute_patiently(query, params)
        # A transaction of its own.
        try:
            self.database.begin_turn(_kind_of(query))
            self._execute_patiently(query, params)
            if self.description is not None:
                # RETURNING: SQLite commits with the last row that is asked for.
                self._returned = iter(super().fetchall())
            return self
        finally:
            self.database.end_turn()

    def _execute_patiently(self, query: str, params: Any) -> Any:
        """Where another connection holds the database, asks again until ``timeout`` is over."""
        deadline = time.monotonic() + self.database.patience_seconds
        while True:
            try:
                return super().execute(query, params)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() >= deadline:
                    raise

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
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


def _is_write(query: str) -> bool:
    return query.lstrip().startswith(_WRITES)


@lru_cache(maxsize=1024)
def _kind_of(query: str) -> str:
    """The table that is written to: its name is the first that stands in quotes."""
    parts = query.split('"', 2)
    return parts[1] if len(parts) > 2 else ""


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


class DatabaseWrapper(base.DatabaseWrapper):
    # How long a statement waits for a lock: the option ``timeout``.
    patience_seconds = 5.0
    # While it is this connection's turn.
    _writers: Writers | None = None
    # While statements have to end by a time that spares writes.
    _lift: Callable[[], None] | None = None

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Makes a missing database as a file that only its owner can read.

        SQLite gives its -wal and -shm files the mode of the database. The file is never opened
        here: closing it again would take away the locks of all other connections of this process
        (fcntl(2)). Another process would then believe itself alone and delete the -wal file, with
        what these connections go on writing to it.
        """
        path = str(conn_params["database"])
        if path != ":memory:" and not path.startswith("file:"):
            # Where this fails, SQLite does too, and says why.
            with suppress(OSError):
                os.mknod(path, stat.S_IFREG | 0o600)
        connection = super().get_new_connection(conn_params)
        self.patience_seconds = conn_params.get("timeout", self.patience_seconds)
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
        return connection

    def create_cursor(self, name: str | None = None) -> Cursor:
        cursor: Cursor = self.connection.cursor(factory=Cursor)
        cursor.database = self
        return cursor

    def statement_cursor(self) -> Cursor:
        """For statements that come again and again, without Django's wrapper."""
        self.lift_deadline()
        return self.create_cursor()

    def lift_deadline(self) -> None:
        """Lifts the deadline of ``statements_end_by`` where it spares writes.

        For work with effects elsewhere than in the database, before they begin.
        """
        if self._lift is not None:
            self._lift()

    @contextmanager
    def statements_end_by(
        self, deadline: float, *, spares_writes: bool = False
    ) -> Iterator[Callable[[], bool]]:
        """Interrupts what still runs at that time of ``time.monotonic``: OperationalError.

        With ``spares_writes``, the first statement that writes lifts the deadline: work that has
        begun to change something is not interrupted. Yields a function that tells whether the
        deadline has passed.
        """

        def watched(execute: Any, query: str, *statement: Any) -> Any:
            if spares_writes and _is_write(query):
                lift()
            self.connection.set_progress_handler(is_over, _INSTRUCTIONS_PER_LOOK)
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
        """Waits for its turn among writes of that kind, and for no longer than one may wait."""
        if self._writers is not None or self.is_in_memory_db():
            return
        database = self.settings_dict["NAME"]
        if threading.get_ident() != threading.main_thread().ident:
            writers = writers_of(database)
            if writers.begin(kind):
                self._writers = writers
            return
        # Ended even where a signal raises before it is known to have begun.
        self._writers = writers_of(database, of_main_thread=True)
        if not self._writers.begin():
            self._writers = None

    def end_turn(self) -> None:
        if self._writers is not None:
            try:
                self._writers.end()
            finally:
                self._writers = None

    def _start_transaction_under_autocommit(self) -> None:
        try:
            self.begin_turn()
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self.end_turn()
            raise

    def _set_autocommit(self, autocommit: bool) -> None:
        """What Django calls at the end of a transaction, committed or not."""
        try:
            super()._set_autocommit(autocommit)  # type: ignore[misc]
        finally:
            self.end_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self.end_turn()
