"""Whether the database is ready: reachable, writable and migrated, checked or waited for."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from core.database.postgresql.primary import primary, servers_in

# Part of a driver's message, in lower case -> reason. The messages themselves name hosts and
# users, so only the log gets them.
_REASONS = (
    ("refused", "refused"),
    ("timeout", "timeout"),
    ("timed out", "timeout"),
    ("too many", "too-many-connections"),
    ("remaining connection slots", "too-many-connections"),
    ("authentication failed", "authentication-failed"),
    ("does not exist", "no-such-database"),
    ("resolve", "unknown-host"),
    ("starting up", "starting-up"),
    ("shutting down", "shutting-down"),
    ("locked", "locked"),
    ("readonly", "read-only"),
    ("read-only", "read-only"),
    ("unable to open", "cannot-be-opened"),
    ("disk is full", "disk-full"),
    ("malformed", "damaged"),
    ("not a database", "damaged"),
)
_ALIAS = "readiness"
# A row has up to 2 MiB, such as a request and its reply, which SQLite writes twice: to the WAL, and
# then to the database.
MIN_FREE_BYTES = 4 * 1024 * 1024
RETRY_SECONDS = 0.5
CONNECT_SECONDS = 3
# The key of an advisory lock that no other program is likely to use: "Moonhook" in ASCII.
_LOCK = int.from_bytes(b"Moonhook", "big")
Say = Callable[[str], object]


class NotReady(Exception):
    """A readiness check failed. ``reason`` is a short public code; the cause is for the log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DatabaseCheck:
    """Checks the database on a connection of its own, because the pool would hide the error."""

    def __init__(self) -> None:
        self._is_migrated = False

    def __call__(self) -> None:
        """Raises ``NotReady``."""
        database = _unpooled()
        # Django's recorder of migrations asks the connection of this thread that has the alias.
        connections[_ALIAS] = database
        try:
            self._check(database)
        except DatabaseError as error:
            raise NotReady(_reason_of(error)) from error
        finally:
            del connections[_ALIAS]
            database.close()

    def _check(self, database: BaseDatabaseWrapper) -> None:
        # Before it is opened, which on a full disk is an error that does not say so.
        if database.vendor == "sqlite":
            _check_file(Path(database.settings_dict["NAME"]))
        with database.cursor() as cursor:
            cursor.execute(
                "SHOW transaction_read_only" if database.vendor == "postgresql" else "SELECT 1"
            )
            (answer,) = cursor.fetchone()
        if answer == "on":
            raise NotReady("read-only")
        # Neither this process's version nor the schema goes back, so one success is enough.
        if not self._is_migrated and pending_migrations(database):
            raise NotReady("migrations-missing")
        self._is_migrated = True


def pending_migrations(database: BaseDatabaseWrapper) -> list[str]:
    """The migrations of this version that are not applied; newer ones may be."""
    executor = MigrationExecutor(database)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [str(migration) for migration, _ in plan]


def is_laid_out_otherwise(database: BaseDatabaseWrapper) -> bool:
    """Whether the tables of an app were made by migrations that this version has replaced.

    No migration leads from there: the app's first one is not applied, and others are.
    """
    loader = MigrationLoader(database)
    applied = loader.applied_migrations or {}
    replaced = {app for app, name in applied if (app, name) not in loader.disk_migrations}
    return any(root[0] in replaced and root not in applied for root in loader.graph.root_nodes())


def _unpooled() -> BaseDatabaseWrapper:
    database = connections.create_connection(connection.alias)
    database.alias = _ALIAS
    database.settings_dict = deepcopy(connection.settings_dict)
    if database.vendor == "postgresql":
        options = database.settings_dict["OPTIONS"]
        options.pop("pool", None)
        options["connect_timeout"] = settings.READINESS_TIMEOUT_SECONDS
    return database


def _check_file(path: Path) -> None:
    """Raises ``NotReady`` if the file cannot be written, or not enlarged. It may be in memory."""
    if not path.exists():
        return
    if not os.access(path, os.W_OK):
        raise NotReady("read-only")
    if shutil.disk_usage(path).free < MIN_FREE_BYTES:
        raise NotReady("disk-full")


def _reason_of(error: DatabaseError) -> str:
    text = str(error).lower()
    return next((reason for part, reason in _REASONS if part in text), "failed")


class WaitedTooLong(Exception):
    """A wait timed out; the message names its subject."""


class UnsuitableDatabase(Exception):
    """The database responds, but a node would fail on it; the message gives the reason."""


def wait_for_database(*, seconds: float, say: Say) -> None:
    """Wait until PostgreSQL accepts connections.

    Raises ``WaitedTooLong``, or ``UnsuitableDatabase`` for a pooler that does not keep a session.
    """
    _wait_while_missing(_unreachable_database, seconds=seconds, say=say)
    if connection.vendor == "postgresql":
        _refuse_unsuitable_pooler()


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


def _refuse_unsuitable_pooler() -> None:
    """Raises ``UnsuitableDatabase``.

    Prepared statements, limits, LISTEN and the lock of migrations belong to a session, which is
    more than one transaction.
    """
    with _connect_directly() as first, _connect_directly() as second:
        process_id = _process_id(first)
        if process_id == first.info.backend_pid:
            # No pooler: it would have made up a process id of its own.
            return
        others, again = _process_id(second), _process_id(first)
    if others == process_id or again != process_id:
        raise UnsuitableDatabase(
            "DATABASE_URL leads to a connection pooler in transaction mode (PgBouncer's "
            "pool_mode=transaction), which does not keep prepared statements, limits and LISTEN. "
            "Use pool_mode=session, or connect to PostgreSQL itself"
        )
    try:
        with _connect_directly(has_limits=True) as limited:
            is_limited = limited.execute("SHOW statement_timeout").fetchone() != ("0",)
    except psycopg.OperationalError as error:
        if "startup parameter" not in str(error):
            raise
        is_limited = False
    if not is_limited:
        raise UnsuitableDatabase(
            "DATABASE_URL leads to a connection pooler that does not pass on the limits of "
            "statements. Set them for the role (ALTER ROLE … SET statement_timeout = '10s'), and "
            "PgBouncer's ignore_startup_parameters = options"
        )


def _process_id(session: "psycopg.Connection[Any]") -> int:
    """The server process that answers."""
    row = session.execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0]) if row else 0


def _connect_directly(*, has_limits: bool = False) -> "psycopg.Connection[Any]":
    """A PostgreSQL connection outside the pool, whose errors give the server's reason.

    Without the limits of statements, unless ``has_limits``, and without Django's types.
    """
    parameters = connection.get_connection_params()
    for name in ("pool", "context", "cursor_factory", "prepare_threshold"):
        parameters.pop(name, None)
    if not has_limits:
        parameters.pop("options", None)
    parameters["connect_timeout"] = CONNECT_SECONDS
    return psycopg.connect(**primary.first(parameters), autocommit=True)


def _unreachable_database() -> str | None:
    if connection.vendor != "postgresql":
        return None
    try:
        _connect_directly().close()
    except psycopg.OperationalError as error:
        return f"the database at {_address()}: {_reason(error)}"
    return None


def _address() -> str:
    servers = servers_in(connection.get_connection_params())
    return ", ".join(f"{host or 'localhost'}:{port}" for host, port in servers)


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
