"""What ``ENGINE`` names."""

import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base

from config.sqlite.writers import Writers, writers_of

_WRITES = ("INSERT", "UPDATE", "DELETE")
# Instructions of SQLite's virtual machine between two looks at the clock: about a millisecond's.
_INSTRUCTIONS_PER_LOOK = 50_000


class Cursor(base.SQLiteCursorWrapper):
    """Remembers what became of a statement's placeholders, and writes when it is its turn.

    Django looks through the whole text for each ``%s``, every time: for an INSERT of 29 columns
    that takes as long as the INSERT itself.
    """

    database: "DatabaseWrapper"

    def execute(self, query: str, params: Any = None) -> Any:
        if self.connection.in_transaction or not query.startswith(_WRITES):
            return super().execute(query, params)
        # A transaction of its own.
        self.database.begin_turn()
        try:
            return super().execute(query, params)
        finally:
            self.database.end_turn()

    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        if param_names is not None:
            return super().convert_query(query, param_names=param_names)
        return _with_question_marks(query)


@lru_cache(maxsize=1024)
def _with_question_marks(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


class DatabaseWrapper(base.DatabaseWrapper):
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
        return super().get_new_connection(conn_params)

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
            if spares_writes and query.startswith(_WRITES):
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

    def begin_turn(self) -> None:
        """Waits for its turn, if it may, and for no longer than one may wait."""
        is_in_main_thread = threading.get_ident() == threading.main_thread().ident
        if is_in_main_thread or self._writers is not None or self.is_in_memory_db():
            return
        writers = writers_of(self.settings_dict["NAME"])
        if writers.begin():
            self._writers = writers

    def end_turn(self) -> None:
        if self._writers is not None:
            writers, self._writers = self._writers, None
            writers.end()

    def _start_transaction_under_autocommit(self) -> None:
        self.begin_turn()
        try:
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
