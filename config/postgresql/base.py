"""What ``ENGINE`` names."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base

from config.postgresql.connection import PatientConnection
from config.postgresql.schema import SchemaEditor

# How much longer than until a deadline a statement may take: setting a limit is a round trip.
_SLACK_SECONDS = 1.0


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes no connection out of the pool that the server has dropped meanwhile.

    Django's own way, ``CONN_HEALTH_CHECKS``, costs every request a round trip, and pauses for a
    second at the first connection that it finds dead.
    """

    SchemaEditorClass = SchemaEditor

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
        return base.ServerBindingCursor(self.connection)  # type: ignore[call-arg]

    @contextmanager
    def statements_end_by(self, deadline: float) -> Iterator[None]:
        """Cancels what still runs about that time of ``time.monotonic``: OperationalError.

        The server does it; ``DATABASE_TIMEOUT`` holds besides. Work that ends long before its
        deadline costs no statement more.
        """
        limited: Any = None
        limit_seconds: float = 0

        def shortened(execute: Any, *statement: Any) -> Any:
            nonlocal limit_seconds, limited
            if limited is not self.connection:
                limit_seconds = settings.DATABASE_TIMEOUT_SECONDS
            remaining = max(deadline - time.monotonic(), 0.001)
            if remaining < limit_seconds - _SLACK_SECONDS:
                limit_seconds, limited = remaining, self.connection
                limit = f"SET statement_timeout = {math.ceil(remaining * 1000)}"
                with self.wrap_database_errors:
                    limited.execute(limit, prepare=False)
            return execute(*statement)

        try:
            with self.execute_wrapper(shortened):
                yield
        finally:
            if limited is not None:
                _lift_limit(limited)


def _lift_limit(connection: Any) -> None:
    """Gives the connection its own limit again, or gives it up: others will use it."""
    try:
        connection.execute("RESET statement_timeout", prepare=False)
    except psycopg.Error:
        connection.close()
