"""Backs up and restores the whole database, on SQLite and PostgreSQL.

A backup is consistent: one snapshot beside running writers, complete before it gets its name. A
restore proves the backup first, and replaces the database in one transaction.
"""

import fcntl
import os
import secrets
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection
from django.utils import timezone
from psycopg.pq import Conninfo

Say = Callable[[str], object]

# In pages of 4 KiB: how often progress is told.
STEP_PAGES = 8192
# SQLite's locks: the pending byte, the reserved byte and 510 shared ones.
# https://www.sqlite.org/src/file/src/os.h
_LOCK_START, _LOCK_BYTES = 0x40000000, 512
_OWN_NAME = f"moonhook-restore-{os.getpid()}"
_ARCHIVE = b"PGDMP"
_SQLITE = b"SQLite format 3\0"
# Tables of other schemas and of extensions are not the service's own.
_DROP_TABLES = """
SET LOCAL lock_timeout = '5s';
SET LOCAL client_min_messages = warning;
DO $$
DECLARE name text;
BEGIN
    FOR name IN
        SELECT c.oid::regclass::text FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
            AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('DROP TABLE IF EXISTS %s CASCADE', name);
    END LOOP;
END $$;
"""
_PROVE = """
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.django_migrations) THEN
        RAISE EXCEPTION 'the backup has no applied migrations';
    END IF;
END $$;
"""


class BackupError(Exception):
    """A backup or restore is refused or failed; the message says why. Nothing was changed."""


def back_up(target: Path, say: Say) -> None:
    """Writes a proven backup with mode 0600 that appears under its name when it is complete.

    Raises ``BackupError``.
    """
    if not target.parent.is_dir():
        raise BackupError(f"{target.parent} is not a directory")
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise BackupError(f"{partial.parent}: {error.strerror}") from None
    try:
        if connection.vendor == "sqlite":
            with closing(_open(_database_path())) as source:
                _copy(source, partial, say)
            _prove(partial)
        else:
            dump(partial)
            _run(["pg_restore", "--file=/dev/null", str(partial)])
        _sync(partial)
        partial.replace(target)
        _sync(target.parent)
    except (sqlite3.Error, OSError) as error:
        raise BackupError(str(error)) from None
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{partial}{suffix}").unlink(missing_ok=True)


def restore(source: Path, say: Say) -> None:
    """Replaces the whole database by a backup, or leaves it as it is. Raises ``BackupError``."""
    require_backup(source)
    require_unused()
    try:
        if connection.vendor == "sqlite":
            _restore_sqlite(source, say)
        else:
            _restore_postgresql(source)
    except (sqlite3.Error, OSError) as error:
        raise BackupError(str(error)) from None


def require_backup(source: Path) -> None:
    """Raises ``BackupError`` unless the file looks like a backup for this kind of database."""
    expected = _SQLITE if connection.vendor == "sqlite" else _ARCHIVE
    try:
        with source.open("rb") as file:
            start = file.read(len(expected))
    except OSError as error:
        raise BackupError(f"{source}: {error.strerror}") from None
    if start != expected:
        raise BackupError(f"{source} is not a backup of a {connection.display_name} database")


def is_database_empty() -> bool:
    """Whether a restore would replace nothing."""
    if connection.vendor == "sqlite":
        path = _database_path()
        return not path.exists() or path.stat().st_size == 0
    with _connect_directly() as database:
        (tables,) = database.execute(
            "SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p')"
            " AND relnamespace = 'public'::regnamespace"
        ).fetchone() or (0,)
    return tables == 0


def require_unused() -> None:
    """Raises ``BackupError`` while another process has the database open."""
    if connection.vendor == "sqlite":
        # Closing the file would also release SQLite's own locks of this process.
        connection.close()
        with _locks_of(_database_path()):
            return
    with _connect_directly() as database:
        # A connection of this process that was just closed may still be listed.
        (others,) = database.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND application_name <> %s",
            [_OWN_NAME],
        ).fetchone() or (0,)
    if others:
        raise BackupError(
            f"the database is in use by {others} other connections: stop every node first"
        )


def dump(target: Path) -> None:
    """Writes a dump of PostgreSQL in its custom format. Raises ``BackupError``."""
    _run(["pg_dump", "--format=custom", f"--file={target}"])


def libpq_environment(database: str | None = None) -> dict[str, str]:
    """The connection as libpq's variables, because all users can read a command line."""
    parameters = connection.get_connection_params()
    if database is not None:
        parameters["dbname"] = database
    variables = {
        option.keyword.decode(): option.envvar.decode()
        for option in Conninfo.get_defaults()
        # The limits of statements are not for backups.
        if option.envvar and option.keyword != b"options"
    }
    own = {
        variables[name]: str(value)
        for name, value in parameters.items()
        if name in variables and value is not None
    }
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_MESSAGES": "C", **own}


def _connect_directly() -> "psycopg.Connection[Any]":
    """A connection outside the pool, which may have more than one. Raises ``BackupError``."""
    known = {option.keyword.decode() for option in Conninfo.get_defaults()} - {"options"}
    parameters = {
        name: value for name, value in connection.get_connection_params().items() if name in known
    }
    try:
        return psycopg.connect(**parameters | {"application_name": _OWN_NAME}, autocommit=True)
    except psycopg.OperationalError as error:
        raise BackupError(first_line(str(error).encode())) from None


def start_tool(command: list[str], *, database: str | None = None, **pipes: Any) -> Any:
    """Starts a program of PostgreSQL's client. Raises ``BackupError`` if it is not installed."""
    try:
        return subprocess.Popen(  # noqa: S603
            command,
            env=libpq_environment(database),
            stderr=subprocess.PIPE,
            **pipes,
        )
    except FileNotFoundError:
        raise BackupError(
            f"{command[0]} is not installed; it is part of PostgreSQL's client, at least of the "
            "server's version"
        ) from None


def _run(command: list[str]) -> None:
    tool = start_tool(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _, errors = tool.communicate()
    except BaseException:
        tool.kill()
        tool.wait()
        raise
    if tool.returncode:
        raise BackupError(f"{command[0]}: {first_line(errors)}")


def first_line(errors: bytes) -> str:
    text = errors.decode(errors="replace").strip()
    return text.partition("\n")[0] or "no reason given"


def _database_path() -> Path:
    return Path(connection.settings_dict["NAME"])


def _open(path: Path) -> sqlite3.Connection:
    """A connection that waits for locks, to a file that must exist."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=20)


def copy_sqlite(source: Path, target: Path) -> None:
    """Writes a snapshot of a SQLite database into a new file, without proving it."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(_open(source)) as database:
        _copy(database, target, lambda line: None)


def _copy(source: sqlite3.Connection, path: Path, say: Say) -> None:
    """Copies a snapshot into a file of its own.

    Without the open transaction, SQLite would begin again whenever another process has written.
    """
    source.execute("BEGIN")
    source.execute("SELECT count(*) FROM sqlite_master").fetchone()
    with closing(sqlite3.connect(path)) as copy:
        source.backup(copy, pages=STEP_PAGES, progress=_telling(say), sleep=0)
        # One file, without a write-ahead log.
        copy.execute("PRAGMA journal_mode = DELETE").fetchone()
    source.rollback()


def _telling(say: Say) -> Callable[[int, int, int], None]:
    """Says each tenth that SQLite has copied."""
    told = 0

    def tell(status: int, remaining: int, total: int) -> None:
        nonlocal told
        percent = 100 * (total - remaining) // max(1, total)
        if percent >= told + 10:
            told = percent
            say(f"{percent} %")

    return tell


def _prove(path: Path) -> None:
    """Raises ``BackupError`` unless the database is intact and has applied migrations."""
    with closing(sqlite3.connect(path)) as database:
        try:
            problems = [row[0] for row in database.execute("PRAGMA integrity_check(1)")]
            orphan = database.execute("PRAGMA foreign_key_check").fetchone()
            migrations = database.execute("SELECT count(*) FROM django_migrations").fetchone()
        except sqlite3.DatabaseError as error:
            raise BackupError(f"the backup is damaged: {error}") from None
    if problems != ["ok"]:
        raise BackupError(f"the backup is damaged: {problems[0]}")
    if orphan is not None:
        raise BackupError(f"the backup is damaged: a row of {orphan[0]} refers to a missing one")
    if migrations == (0,):
        raise BackupError("the backup has no applied migrations")


@contextmanager
def _locks_of(path: Path) -> Iterator[None]:
    """Holds the locks of a connection that is alone. Raises ``BackupError`` if there are others.

    Every open connection of the write-ahead mode holds a shared one.
    """
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield
        return
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCK_BYTES, _LOCK_START)
        except OSError:
            raise BackupError("the database is in use: stop every process that uses it") from None
        yield
    finally:
        os.close(file)


def _restore_sqlite(source: Path, say: Say) -> None:
    """Proves a copy, then writes it into the database as one transaction of SQLite.

    The database file stays the same one, so a process that opens it meanwhile finds it locked, and
    never goes on with a file that was replaced. An interrupted transaction is rolled back by the
    next connection.
    """
    path = _database_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    copy = path.with_name(f".{path.name}.{secrets.token_hex(4)}.restore")
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        shutil.copyfile(source, copy)
        _prove(copy)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(_exclusive(path, say)) as target, closing(sqlite3.connect(copy)) as proven:
            proven.backup(target, pages=STEP_PAGES, progress=_telling(say), sleep=0)
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


def _exclusive(path: Path, say: Say) -> sqlite3.Connection:
    """The only connection to the database; a damaged one is moved aside first."""
    try:
        return _try_exclusive(path)
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise BackupError("the database is in use: stop every process that uses it") from None
        if code not in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            raise
    aside = path.with_name(f"{path.name}.damaged-{timezone.now():%Y%m%d-%H%M%S}")
    with _locks_of(path):
        path.rename(aside)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    say(f"the present database is damaged; it is now {aside.name}")
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return _try_exclusive(path)


def _try_exclusive(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone()
        # Leaving the write-ahead mode fails while there are other connections.
        database.execute("PRAGMA journal_mode = DELETE").fetchone()
        # The lock is kept beyond the transaction.
        database.execute("BEGIN EXCLUSIVE")
        database.execute("COMMIT")
    except BaseException:
        database.close()
        raise
    return database


def _restore_postgresql(source: Path) -> None:
    """Restores in one transaction, which ``psql`` commits only after ``pg_restore`` succeeded."""
    _run(["pg_restore", "--file=/dev/null", str(source)])
    psql = start_tool(
        ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null"],
        stdin=subprocess.PIPE,
    )
    restored = start_tool(
        ["pg_restore", "--no-owner", "--file=-", str(source)], stdout=subprocess.PIPE
    )
    try:
        # psql ends early at an error, and says why.
        with suppress(BrokenPipeError):
            psql.stdin.write(b"BEGIN;" + _DROP_TABLES.encode())
            shutil.copyfileobj(restored.stdout, psql.stdin)
            restored.stdout.close()
            errors = restored.stderr.read()
            if restored.wait():
                raise BackupError(f"pg_restore: {first_line(errors)}")
            psql.stdin.write(_PROVE.encode() + b"COMMIT;")
        _, errors = psql.communicate()
    finally:
        # A killed psql leaves a transaction that the server rolls back.
        for tool in (restored, psql):
            if tool.poll() is None:
                tool.kill()
            tool.wait()
            for pipe in (tool.stdout, tool.stderr):
                if pipe is not None:
                    pipe.close()
    if psql.returncode:
        raise BackupError(f"psql: {first_line(errors)}")


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
