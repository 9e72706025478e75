"""The schema editor for migrations of a database in use."""

from typing import Any

from django.db.backends.postgresql.schema import DatabaseSchemaEditor

LOCK_TIMEOUT_SECONDS = 5


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
