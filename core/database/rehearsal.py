"""Runs the pending migrations on a copy of the database, and reports how long each one takes.

The copy is the process's default database meanwhile, as in a test run, so a migration that names
no database cannot reach the real one.
"""

import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from psycopg import sql

from core.database.backup import BackupError, copy_sqlite, first_line, start_tool

# From the weakest to the strongest: https://www.postgresql.org/docs/current/explicit-locking.html
_MODES = (
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
)
_OWN_LOCKS = """
SELECT c.oid::regclass::text, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
    AND c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace
"""
_CONCURRENTLY = re.compile(r'\bCONCURRENTLY\b.*\bON "?([\w.]+)', re.IGNORECASE | re.DOTALL)
# A migration's own bookkeeping.
_RECORDER = "django_migrations"
_SQLITE_FILE = "all tables"


@dataclass(slots=True)
class Rehearsed:
    """A migration, its duration, and the strongest lock on each table that existed before it."""

    name: str
    seconds: float = 0.0
    locks: dict[str, str] = field(default_factory=dict)

    @property
    def lines(self) -> list[str]:
        locks = [f"{table}: {mode}, {_effect(mode)}" for table, mode in sorted(self.locks.items())]
        return [f"{self.name}: {self.seconds:.2f} s", *(f"  {line}" for line in locks)]


class RehearsalError(Exception):
    """The rehearsal is not possible, or a migration failed; the message names the reason."""


def rehearse(on_migration: Callable[[Rehearsed], object]) -> int:
    """Applies the pending migrations to a copy, and returns their number.

    Calls ``on_migration`` after each one. Removes the copy in any case. Raises ``RehearsalError``.
    """
    count = len(_pending())
    if count:
        with _copy_as_default():
            for key in _pending():
                on_migration(_apply(key))
    return count


def _pending() -> list[tuple[str, str]]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [(migration.app_label, migration.name) for migration, _ in plan]


def _apply(key: tuple[str, str]) -> Rehearsed:
    rehearsed = Rehearsed(".".join(key))
    tables = set(connection.introspection.table_names()) - {_RECORDER}
    overhead = 0.0

    def watched(execute: Any, query: Any, params: Any, many: bool, context: Any) -> Any:
        nonlocal overhead
        result, seconds = _with_locks(
            rehearsed.locks, tables, lambda: execute(query, params, many, context), str(query)
        )
        overhead += seconds
        return result

    executor = MigrationExecutor(connection)
    began = time.monotonic()
    try:
        with connection.execute_wrapper(watched):
            executor.migrate([key])
    except Exception as error:
        text = " ".join(str(error).split())
        raise RehearsalError(f"{rehearsed.name} failed: {type(error).__name__}: {text}") from error
    rehearsed.seconds = time.monotonic() - began - overhead
    return rehearsed


def _with_locks(
    locks: dict[str, str], tables: set[str], execute: Callable[[], Any], query: str
) -> tuple[Any, float]:
    """The statement's result, and the seconds spent on looking for its locks."""
    if connection.vendor == "sqlite":
        if not query.lstrip().upper().startswith(("SELECT", "PRAGMA")):
            locks[_SQLITE_FILE] = "write lock"
        return execute(), 0.0
    if concurrent := _CONCURRENTLY.search(query):
        # It cannot be in a transaction, and its lock ends with it.
        _note(locks, tables, concurrent[1], "ShareUpdateExclusiveLock")
        return execute(), 0.0
    # In autocommit, a transaction of its own keeps the locks until they are read.
    database: Any = connection.connection
    with nullcontext() if connection.in_atomic_block else database.transaction():
        result = execute()
        began = time.monotonic()
        # With a cursor of its own, because the statement's rows are not fetched yet.
        for table, mode in database.execute(_OWN_LOCKS, prepare=False).fetchall():
            _note(locks, tables, table.strip('"'), mode)
        return result, time.monotonic() - began


def _note(locks: dict[str, str], tables: set[str], table: str, mode: str) -> None:
    if table not in tables or mode not in _MODES:
        return
    if _MODES.index(mode) > _MODES.index(locks.get(table, _MODES[0])):
        locks[table] = mode


def _effect(mode: str) -> str:
    if mode == "AccessExclusiveLock":
        return "blocks reads and writes"
    if mode in {"ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "write lock"}:
        return "blocks writes"
    return "blocks neither reads nor writes"


@contextmanager
def _copy_as_default() -> Iterator[None]:
    copies = _sqlite_copy() if connection.vendor == "sqlite" else _postgresql_copy()
    real = connection.settings_dict["NAME"]
    try:
        with copies as name:
            _use(name)
            try:
                yield
            finally:
                _use(real)
    except BackupError as error:
        raise RehearsalError(str(error)) from None


def _use(name: str) -> None:
    database: Any = connection
    database.close()
    if database.vendor == "postgresql":
        database.close_pool()
    database.settings_dict["NAME"] = name


@contextmanager
def _sqlite_copy() -> Iterator[str]:
    path = Path(connection.settings_dict["NAME"])
    needed = 2 * path.stat().st_size
    if shutil.disk_usage(path.parent).free < needed:
        raise RehearsalError(f"{path.parent} needs {needed >> 20} MiB of free space")
    with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=path.parent) as directory:
        copy = Path(directory) / path.name
        copy_sqlite(path, copy)
        yield str(copy)


@contextmanager
def _postgresql_copy() -> Iterator[str]:
    """A scratch database on the same server, restored from a dump.

    A template copy would need a moment without other connections.
    """
    real = connection.settings_dict["NAME"]
    scratch = f"{real[:40]}_rehearsal_{secrets.token_hex(4)}"
    _on_server(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(scratch)))
    try:
        _fill(scratch)
        yield scratch
    finally:
        _on_server(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(scratch)))


def _on_server(statement: sql.Composed) -> None:
    """Executes a statement that no transaction may contain, without its time limits."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")
            try:
                cursor.execute(statement)
            finally:
                cursor.execute("RESET statement_timeout")
    except Exception as error:
        text = " ".join(str(error).split())
        raise RehearsalError(f"a scratch database is needed (CREATEDB): {text}") from error


def _fill(scratch: str) -> None:
    dump = start_tool(["pg_dump", "--format=custom", "--compress=0"], stdout=subprocess.PIPE)
    try:
        restore = start_tool(
            ["pg_restore", "--exit-on-error", "--no-owner", "--dbname", scratch],
            database=scratch,
            stdin=dump.stdout,
            stdout=subprocess.DEVNULL,
        )
    except BaseException:
        _end(dump)
        raise
    try:
        dump.stdout.close()
        _, errors = restore.communicate()
        if restore.returncode:
            raise RehearsalError(f"pg_restore: {first_line(errors)}")
        errors = dump.stderr.read()
        if dump.wait():
            raise RehearsalError(f"pg_dump: {first_line(errors)}")
    finally:
        _end(dump)
        _end(restore)


def _end(tool: Any) -> None:
    if tool.poll() is None:
        tool.kill()
    tool.wait()
    tool.stderr.close()
