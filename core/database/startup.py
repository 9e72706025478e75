"""Before a node serves: the database answers, and its tables are as new as this code."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

EVERY_SECONDS = 0.5

Say = Callable[[str], object]


class WaitedTooLong(Exception):
    """Its text says for what."""


def wait_until_nothing_is_missing(
    what_is_missing: Callable[[], str | None], *, seconds: float, say: Say
) -> None:
    """Asks again and again; says what it waits for, once for each answer.

    Raises WaitedTooLong.
    """
    deadline = time.monotonic() + seconds
    said = None
    while (missing := what_is_missing()) is not None:
        if time.monotonic() >= deadline:
            raise WaitedTooLong(f"Gave up after {seconds:g} seconds of waiting for {missing}")
        if missing != said:
            say(f"Waiting for {missing}")
            said = missing
        time.sleep(EVERY_SECONDS)
    if said is not None:
        say("Going on.")


CONNECT_SECONDS = 3


def wait_for_database(*, seconds: float, say: Say) -> None:
    """Raises WaitedTooLong."""
    wait_until_nothing_is_missing(_what_is_missing, seconds=seconds, say=say)


def connect_directly() -> "psycopg.Connection[Any]":
    """A PostgreSQL connection beside the pool, whose errors say what is wrong."""
    parameters = connection.get_connection_params()
    own = {"host", "port", "dbname", "user", "password", "sslmode", "sslrootcert", "passfile"}
    return psycopg.connect(
        **{name: value for name, value in parameters.items() if name in own},
        connect_timeout=CONNECT_SECONDS,
        autocommit=True,
    )


def _what_is_missing() -> str | None:
    if connection.vendor != "postgresql":
        return None
    try:
        connect_directly().close()
    except psycopg.OperationalError as error:
        return f"the database at {_address()}: {_reason(error)}"
    return None


def _address() -> str:
    database = connection.settings_dict
    return f"{database['HOST'] or 'localhost'}:{database['PORT'] or 5432}"


def _reason(error: psycopg.OperationalError) -> str:
    """The part of libpq's message that says why, without whom it asked."""
    first_line = str(error).partition("\n")[0]
    return first_line.rpartition(": ")[2].strip().rstrip("?.").lower() or "no reason given"


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
