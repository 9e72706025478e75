"""A psycopg connection that bounds its waits and detects when the server has closed it."""

import math
import select
import time
from typing import Any, Self

import psycopg
from django.conf import settings
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus
from psycopg.waiting import READY_R, READY_W, WAIT_R, WAIT_RW, WAIT_W

from core import green_threads

_EVENTS = {
    WAIT_R: green_threads.READABLE,
    WAIT_W: green_threads.WRITABLE,
    WAIT_RW: green_threads.READABLE | green_threads.WRITABLE,
}

# The server itself ends slow statements, so this applies only to a server that does not respond.
SILENCE_SECONDS = 5


class StatementCursor(psycopg.Cursor[Any]):
    """A cursor kept for one statement, so that psycopg looks up conversions of values only once.

    It binds values on the server. It keeps neither them nor rows, which may be large.
    """

    def execute(self, *statement: Any, **options: Any) -> Self:
        super().execute(*statement, **options)
        self._query = None
        return self

    def fetchall(self) -> list[Any]:
        rows = super().fetchall()
        self._reset()
        return rows


class TimeLimitedConnection(psycopg.Connection):
    """Stops waiting for a server that stays silent for longer than a statement may take.

    A frozen server keeps its TCP connections open, so nothing else would end the wait.
    """

    max_wait_seconds: float | None = settings.DATABASE_TIMEOUT_SECONDS + SILENCE_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._statement_cursors: dict[str, StatementCursor] = {}

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            if green_threads.current() is not None:
                return self._wait_green(gen, timeout or self.max_wait_seconds)
            return super().wait(gen, interval, timeout or self.max_wait_seconds)
        except psycopg.OperationalError:
            # The next data on this connection would be the result of the abandoned statement.
            if self.info.transaction_status == TransactionStatus.ACTIVE:
                self.close()
            raise

    def _wait_green(self, gen: PQGen[RV], timeout: float | None) -> RV:
        """Drives psycopg's generator like ``psycopg.waiting.wait``, in a green thread."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        try:
            wanted = next(gen)
            while True:
                events = green_threads.wait_for(self.pgconn.socket, _EVENTS[wanted], deadline)
                if not events:
                    raise psycopg.OperationalError("the server does not respond")
                # An error or a hang-up is noticed by reading.
                is_writable = events & green_threads.WRITABLE
                is_readable = events & ~green_threads.WRITABLE
                ready = (READY_R if is_readable else 0) | (READY_W if is_writable else 0)
                wanted = gen.send(ready)
        except StopIteration as end:
            result: RV = end.value
            return result

    def statement_cursor(self, statement: str) -> StatementCursor:
        """The cursor for a frequent statement, which must be one of a few."""
        cursor = self._statement_cursors.get(statement)
        if cursor is None:
            cursor = self._statement_cursors[statement] = StatementCursor(self)
        return cursor

    def is_dropped(self) -> bool:
        """Whether the server has closed the connection or sent data unasked, before it closes it.

        Makes one system call instead of a query, so it can be called before each use.
        """
        if self.closed:
            return True
        events = select.poll()
        events.register(self.fileno(), select.POLLIN)
        return bool(events.poll(0))
