"""Migrations of a database that is in use."""

from typing import Any

from django.db.backends.postgresql.schema import DatabaseSchemaEditor

LOCK_TIMEOUT_SECONDS = 5


class SchemaEditor(DatabaseSchemaEditor):
    """A statement may take as long as it needs, but does not queue for a table's lock for long.

    Whoever waits for an exclusive lock makes every later query of the table wait behind it. A
    migration that is not atomic builds indexes beside the writers, and may wait for them.
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
        self.connection.connection.may_wait_seconds = None

    def _restore_limits(self) -> None:
        """What an atomic migration set, its transaction takes back."""
        database = self.connection.connection
        if database is None or database.closed:
            return
        del database.may_wait_seconds
        if not self.atomic_migration:
            with self.connection.cursor() as cursor:
                cursor.execute("RESET statement_timeout")
                cursor.execute("RESET idle_in_transaction_session_timeout")
                cursor.execute("RESET lock_timeout")
