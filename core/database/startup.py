"""The start of a node: waits for the database and its schema, and migrates it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.core.management import call_command
from django.db import connection

from core.database.check import pending_migrations

RETRY_SECONDS = 0.5
CONNECT_SECONDS = 3
# The key of an advisory lock that no other program is likely to use: "Moonhook" in ASCII.
_LOCK = int.from_bytes(b"Moonhook", "big")

Say = Callable[[str], object]


class WaitedTooLong(Exception):
    """A wait timed out; the message names its subject."""


def wait_for_database(*, seconds: float, say: Say) -> None:
    """Wait until PostgreSQL accepts connections. Raises ``WaitedTooLong``."""
    _wait_while_missing(_unreachable_database, seconds=seconds, say=say)


def migrate(*, seconds: float, say: Say) -> None:
    """Migrate the database; of several nodes that start at once, one does and the others wait.

    Raises ``WaitedTooLong``.
    """
    if not pending_migrations(connection):
        return
    with _migration_lock(seconds, say):
        call_command("migrate", interactive=False, verbosity=0)


def wait_for_schema(*, seconds: float, say: Say) -> None:
    """Wait until another process has migrated the database. Raises ``WaitedTooLong``."""
    _wait_while_missing(_outdated_schema, seconds=seconds, say=say)


def _wait_while_missing(
    find_missing: Callable[[], str | None], *, seconds: float, say: Say
) -> None:
    """Poll until ``find_missing`` returns ``None``, and say once what each wait is for.

    Raises ``WaitedTooLong``.
    """
    deadline = time.monotonic() + seconds
    said = None
    while (missing := find_missing()) is not None:
        if time.monotonic() >= deadline:
            raise WaitedTooLong(f"Gave up after {seconds:g} seconds of waiting for {missing}")
        if missing != said:
            say(f"Waiting for {missing}")
            said = missing
        time.sleep(RETRY_SECONDS)
    if said is not None:
        say("Continuing.")


def _connect_directly() -> "psycopg.Connection[Any]":
    """A PostgreSQL connection outside the pool, whose errors give the server's reason."""
    parameters = connection.get_connection_params()
    own = {"host", "port", "dbname", "user", "password", "sslmode", "sslrootcert", "passfile"}
    return psycopg.connect(
        **{name: value for name, value in parameters.items() if name in own},
        connect_timeout=CONNECT_SECONDS,
        autocommit=True,
    )


def _unreachable_database() -> str | None:
    if connection.vendor != "postgresql":
        return None
    try:
        _connect_directly().close()
    except psycopg.OperationalError as error:
        return f"the database at {_address()}: {_reason(error)}"
    return None


def _address() -> str:
    database = connection.settings_dict
    return f"{database['HOST'] or 'localhost'}:{database['PORT'] or 5432}"


def _reason(error: psycopg.OperationalError) -> str:
    """The last part of libpq's message: the reason, without host and user."""
    first_line = str(error).partition("\n")[0]
    return first_line.rpartition(": ")[2].strip().rstrip("?.").lower() or "no reason given"


def _outdated_schema() -> str | None:
    pending = pending_migrations(connection)
    if not pending:
        return None
    more = f" and {len(pending) - 1} more" if len(pending) > 1 else ""
    return f"manage.py migrate: the database's schema is behind by {pending[0]}{more}"


@contextmanager
def _migration_lock(seconds: float, say: Say) -> Iterator[None]:
    """Holds a lock that ends with its connection, so a node that dies does not block the others."""
    if connection.vendor != "postgresql":
        yield
        return
    with _connect_directly() as holder:

        def other_migration() -> str | None:
            taken = holder.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK]).fetchone()
            return None if taken == (True,) else "another node, which migrates the database"

        _wait_while_missing(other_migration, seconds=seconds, say=say)
        yield
