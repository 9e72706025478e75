"""The database backend for ``ENGINE``: pool checks, deadlines for statements, and migrations."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base
from django.db.backends.postgresql.schema import DatabaseSchemaEditor
from psycopg_pool import PoolTimeout

from core import waiting
from core.database.postgresql.connection import TimeLimitedConnection
from core.database.postgresql.primary import primary
from core.database.unavailable import UnavailabilityWrapper

LOCK_TIMEOUT_SECONDS = 5
# How far a statement may exceed its deadline, because setting a limit takes a round trip.
_SLACK_SECONDS = 1.0
_WRITES = ("INSERT", "UPDATE", "DELETE")
# How long a green thread may hold up the others for a connection.
_GREEN_WAIT_SECONDS = 0.002


class SchemaEditor(DatabaseSchemaEditor):
    """Lifts the time limit of statements, and limits the wait for a table's lock.

    Queries of a table queue behind a statement that waits for its exclusive lock. A migration that
    is not atomic builds indexes concurrently with writers, and may wait for them.
    """

    def __enter__(self) -> Any:
        editor = super().__enter__()
        if not self.collect_sql:
            self._lift_limits()
        return editor

    def __exit__(self, *exception: Any) -> None:  # noqa: PYI036  (as its parent takes them)
        try:
            super().__exit__(*exception)
        finally:
            if not self.collect_sql:
                self._restore_limits()

    def _lift_limits(self) -> None:
        scope = "LOCAL" if self.atomic_migration else "SESSION"
        lock_timeout = f"{LOCK_TIMEOUT_SECONDS}s" if self.atomic_migration else "0"
        with self.connection.cursor() as cursor:
            cursor.execute(f"SET {scope} statement_timeout = 0")
            cursor.execute(f"SET {scope} idle_in_transaction_session_timeout = 0")
            cursor.execute(f"SET {scope} lock_timeout = '{lock_timeout}'")
        self.connection.connection.max_wait_seconds = None

    def _restore_limits(self) -> None:
        """Undo ``_lift_limits``; the end of an atomic migration's transaction does it itself."""
        database = self.connection.connection
        if database is None or database.closed:
            return
        del database.max_wait_seconds
        if not self.atomic_migration:
            with self.connection.cursor() as cursor:
                cursor.execute("RESET statement_timeout")
                cursor.execute("RESET idle_in_transaction_session_timeout")
                cursor.execute("RESET lock_timeout")


class DatabaseWrapper(base.DatabaseWrapper):
    """Skips pooled connections that the server has closed, or whose server was demoted.

    Django's ``CONN_HEALTH_CHECKS`` costs each request a round trip, and waits for a second after
    the first closed connection.
    """

    SchemaEditorClass = SchemaEditor
    # Set while a deadline of ``statements_end_by`` spares writes.
    _lift: Callable[[], None] | None = None

    def __init__(self, settings_dict: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(settings_dict, *args, **kwargs)
        if pool := settings_dict["OPTIONS"].get("pool"):
            pool["connection_class"] = TimeLimitedConnection

    @cached_property
    def wrap_database_errors(self) -> UnavailabilityWrapper:
        return UnavailabilityWrapper(self)

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        pool = self.pool
        if not pool:
            return super().get_new_connection(primary.first(conn_params))
        connection = self._connection_of(pool, conn_params)
        while connection.is_dropped() or connection.is_demoted():
            connection.close()
            # The pool replaces each closed connection that it gets back.
            pool.putconn(connection)
            connection = self._connection_of(pool, conn_params)
        return connection

    def _connection_of(self, pool: Any, conn_params: dict[str, Any]) -> Any:
        """Django's way opens the pool, but takes several times as long as an open pool."""
        if pool.closed or "isolation_level" in self.settings_dict["OPTIONS"]:
            return waiting.in_thread(partial(super().get_new_connection, conn_params))
        if waiting.current() is None:
            return pool.getconn()
        if pool.get_stats()["pool_available"]:
            # Another thread may take the last one meanwhile.
            with suppress(PoolTimeout):
                return pool.getconn(_GREEN_WAIT_SECONDS)
        return waiting.in_thread(pool.getconn)

    def _set_autocommit(self, autocommit: bool) -> None:
        """Skips psycopg's checks if nothing changes, as with most connections of the pool."""
        if self.connection.autocommit != autocommit:
            super()._set_autocommit(autocommit)  # type: ignore[misc]

    def execute_statement(self, query: str, params: Sequence[Any], *, is_frequent: bool) -> Any:
        """Execute a statement with its values bound on the server, and return its cursor.

        Django's cursors write them into the statement. The server plans a frequent statement once
        per connection.
        """
        self.lift_deadline()
        if is_frequent:
            cursor: Any = self.connection.statement_cursor(query)
            return cursor.execute(query, params)
        cursor = base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]
        cursor.execute(query, params, prepare=False)
        return cursor

    def execute_in_pipeline(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a frequent statement for each row of values, in one round trip."""
        self.lift_deadline()
        self.connection.statement_cursor(query).executemany(query, rows)

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
        """Cancel statements that run about that time of ``time.monotonic``: OperationalError.

        The server cancels them; ``DATABASE_TIMEOUT`` also applies. No extra statement is sent
        until the deadline is near. With ``spares_writes``, the first writing statement lifts the
        deadline, so that work with changes is not interrupted. Yields a function that returns
        whether the deadline has passed.
        """
        limited: Any = None
        limit_seconds: float = 0

        def shortened(execute: Any, query: Any, *statement: Any) -> Any:
            nonlocal limit_seconds, limited
            if spares_writes and isinstance(query, str) and query.lstrip().startswith(_WRITES):
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
            """Called before each write, because a rollback restores an earlier limit."""
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
    """Restore the connection's own limit for its next user, or close the connection."""
    try:
        connection.execute("RESET statement_timeout", prepare=False)
    except psycopg.Error:
        connection.close()
