"""The database's tables: whether they are as new as this code."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core.database.patience import Say, wait_until_nothing_is_missing
from core.database.startup_database import connect_directly

# Any number that no other program takes for a lock of its own: "Moonhook" in ASCII.
_LOCK = int.from_bytes(b"Moonhook", "big")


def migrate(*, seconds: float, say: Say) -> None:
    """Of several nodes that start at once, one migrates and the others wait.

    Raises WaitedTooLong.
    """
    if not pending_migrations():
        return
    with _alone(seconds, say):
        call_command("migrate", interactive=False, verbosity=0)


def wait_for_schema(*, seconds: float, say: Say) -> None:
    """For somebody else to migrate. Raises WaitedTooLong."""
    wait_until_nothing_is_missing(_what_is_behind, seconds=seconds, say=say)


def pending_migrations() -> list[str]:
    """Those of this code that the database has not seen. It may well have seen newer ones."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [str(migration) for migration, _ in plan]


def _what_is_behind() -> str | None:
    pending = pending_migrations()
    if not pending:
        return None
    more = f" and {len(pending) - 1} more" if len(pending) > 1 else ""
    return f"manage.py migrate: the database's schema is behind by {pending[0]}{more}"


@contextmanager
def _alone(seconds: float, say: Say) -> Iterator[None]:
    """Holds a lock that ends with its connection, so that a node that dies blocks nobody."""
    if connection.vendor != "postgresql":
        yield
        return
    with connect_directly() as holder:

        def who_is_ahead() -> str | None:
            taken = holder.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK]).fetchone()
            return None if taken == (True,) else "another node, which migrates the database"

        wait_until_nothing_is_missing(who_is_ahead, seconds=seconds, say=say)
        yield
