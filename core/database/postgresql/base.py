"""What ``ENGINE`` names."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base

from core.database.postgresql.connection import PatientConnection
from core.database.postgresql.schema import SchemaEditor

# How much longer than until a deadline a statement may take: setting a limit is a round trip.
_SLACK_SECONDS = 1.0
_WRITES = ("INSERT", "UPDATE", "DELETE")


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes no connection out of the pool that the server has dropped meanwhile.

    Django's own way, ``CONN_HEALTH_CHECKS``, costs every request a round trip, and pauses for a
    second at the first connection that it finds dead.
    """

    SchemaEditorClass = SchemaEditor
    # While statements have to end by a time that spares writes.
    _lift: Callable[[], None] | None = None

    def __init__(self, settings_dict: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(settings_dict, *args, **kwargs)
        if pool := settings_dict["OPTIONS"].get("pool"):
            pool["connection_class"] = PatientConnection

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        # As often as the pool holds dead ones: for each that is given back it opens another.
        while self.pool and connection.is_dropped():
            connection.close()
            self.pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def statement_cursor(self) -> base.ServerBindingCursor:
        """For statements that come again and again: the server plans them once a connection.

        Values are bound there too; Django's cursors write them into the statement.
        """
        self.lift_deadline()
        return base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]

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
        """Cancels what still runs about that time of ``time.monotonic``: OperationalError.

        The server does it; ``DATABASE_TIMEOUT`` holds besides. Work that ends long before its
        deadline costs no statement more. With ``spares_writes``, the first statement that writes
        lifts the deadline: work that has begun to change something is not interrupted. Yields a
        function that tells whether the deadline has passed.
        """
        limited: Any = None
        limit_seconds: float = 0

        def shortened(execute: Any, query: Any, *statement: Any) -> Any:
            nonlocal limit_seconds, limited
            if spares_writes and isinstance(query, str) and query.startswith(_WRITES):
                lift()
            if limited is not self.connection:
                limit_seconds = settings.DATABASE_TIMEOUT_SECONDS
            remaining = max(deadline - time.monotonic(), 0.001)
            if remaining < limit_seconds - _SLACK_SECONDS:
                limit_seconds, limited = remaining, self.connection
                limit = f"SET statement_timeout = {math.ceil(remaining * 1000)}"
                with self.wrap_database_errors:
                    limited.execute(limit, prepare=False)
            return execute(query, *statement)

        def is_over() -> bool:
            return time.monotonic() >= deadline

        def lift() -> None:
            """Before each write: the end of a transaction that failed brings its limit back."""
            nonlocal deadline
            deadline = math.inf
            if limited is not None and limited is self.connection:
                _lift_limit(limited)

        if spares_writes:
            self._lift = lift
        try:
            with self.execute_wrapper(shortened):
                yield is_over
        finally:
            self._lift = None
            if limited is not None:
                _lift_limit(limited)


def _lift_limit(connection: Any) -> None:
    """Gives the connection its own limit again, or gives it up: others will use it."""
    try:
        connection.execute("RESET statement_timeout", prepare=False)
    except psycopg.Error:
        connection.close()
