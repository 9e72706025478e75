"""A psycopg connection that bounds its waits and detects when the server has closed it."""

import math
import select
import time
from collections.abc import Mapping
from typing import Any, Self

import psycopg
from django.conf import settings
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus
from psycopg.waiting import READY_NONE, READY_R, READY_W, WAIT_R, WAIT_RW, WAIT_W

from core import waiting
from core.database.postgresql.primary import Server, primary, servers_in

_EVENTS = {
    WAIT_R: waiting.READABLE,
    WAIT_W: waiting.WRITABLE,
    WAIT_RW: waiting.READABLE | waiting.WRITABLE,
}

# The server itself ends slow statements, so this applies only to a server that does not respond.
SILENCE_SECONDS = 5
_OF_PRIMARY = {"read-write", "primary"}
# With several servers: how long a statement may take before this process looks for another primary.
SUSPICIOUS_SECONDS = 1.0


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

    A frozen server keeps its TCP connections open, so nothing else would end the wait. If the
    parameters name several servers, it also stops when another one has become the primary.
    """

    max_wait_seconds: float | None = settings.DATABASE_TIMEOUT_SECONDS + SILENCE_SECONDS
    _needs_writes = False
    # The parameters if they ask several servers for the primary, and the one that accepted.
    _parameters: Mapping[str, Any] | None = None
    _server: Server = ("", "")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._statement_cursors: dict[str, StatementCursor] = {}

    @classmethod
    def connect(cls, conninfo: str = "", **parameters: Any) -> Self:
        connection = super().connect(conninfo, **primary.first(parameters))
        wanted = parameters.get("target_session_attrs")
        connection._needs_writes = wanted == "read-write"
        if wanted in _OF_PRIMARY and len(servers_in(parameters)) > 1:
            connection._parameters = parameters
            connection._server = (connection.info.host, str(connection.info.port))
            primary.note(connection._server)
        return connection

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        limit = self.max_wait_seconds if timeout is None else timeout
        if self._parameters is not None:
            gen = self._while_primary(gen, self._parameters)
        try:
            if waiting.current() is not None:
                return self._wait_green(gen, limit)
            return super().wait(gen, interval, limit)
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
                look_at = deadline
                if self._parameters is not None:
                    look_at = min(deadline, time.monotonic() + SUSPICIOUS_SECONDS)
                events = waiting.wait_for(self.pgconn.socket, _EVENTS[wanted], look_at)
                if not events and look_at == deadline:
                    raise psycopg.OperationalError("the server does not respond")
                # An error or a hang-up is noticed by reading.
                is_writable = events & waiting.WRITABLE
                is_readable = events & ~waiting.WRITABLE
                ready = (READY_R if is_readable else 0) | (READY_W if is_writable else 0)
                wanted = gen.send(ready)
        except StopIteration as end:
            result: RV = end.value
            return result

    def _while_primary(self, gen: PQGen[RV], parameters: Mapping[str, Any]) -> PQGen[RV]:
        """Wraps a generator of psycopg's, and ends it when another server is the primary."""
        look_at = time.monotonic() + SUSPICIOUS_SECONDS
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready == READY_NONE:
                    if not primary.is_at(self._server):
                        raise psycopg.OperationalError("another server has become the primary")
                    if time.monotonic() >= look_at:
                        primary.look_elsewhere(parameters, self._server)
                        look_at = time.monotonic() + SUSPICIOUS_SECONDS
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

    def is_demoted(self) -> bool:
        """Whether another server has become the primary, or this one no longer takes writes.

        Never of a connection that did not ask for such a server. The server reports its state with
        each answer, so this sends nothing.
        """
        if self._parameters is not None and not primary.is_at(self._server):
            return True
        if not self._needs_writes:
            return False
        return self.pgconn.parameter_status(b"default_transaction_read_only") == b"on"
