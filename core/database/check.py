"""The readiness check of the database: reachable, writable, and migrated to this version."""

import os
import shutil
from copy import deepcopy
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

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
# A run has up to 1 MiB each of call and reply, which SQLite writes twice: to the WAL, and then to
# the database.
MIN_FREE_BYTES = 4 * 1024 * 1024


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
