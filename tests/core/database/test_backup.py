"""`manage.py backup` and `manage.py restore`: complete or not at all."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.commands import ROOT, manage
from tests.moonhook_server import prepare_database
from tests.postgresql import empty_database, needs_postgresql, url_of

COUNT = "SELECT count(*) FROM django_migrations"
KILLED_HALFWAY = """
import os, signal, sys
from pathlib import Path
import django
django.setup()
from core.database import backup
backup.STEP_PAGES = 50
backup.restore(Path(sys.argv[1]), lambda percent: os.kill(os.getpid(), signal.SIGKILL))
"""


def execute_in(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        return database.execute(statement).fetchall()


def assert_refused(finished: subprocess.CompletedProcess[str], message: str) -> None:
    assert (finished.returncode, finished.stdout) == (1, "")
    assert message in finished.stderr


@pytest.fixture
def database(tmp_path: Path) -> Path:
    prepare_database(tmp_path / "data")
    path = tmp_path / "data" / "moonhook.sqlite3"
    execute_in(path, "CREATE TABLE marks (text)")
    execute_in(path, "INSERT INTO marks VALUES ('before')")
    return path


@pytest.fixture
def backup(database: Path, tmp_path: Path) -> Path:
    """Made before the database got its mark ``after``."""
    path = tmp_path / "moonhook.backup"
    made = manage(database.parent, "backup", str(path))
    assert made.returncode == 0, made.stderr
    execute_in(database, "INSERT INTO marks VALUES ('after')")
    return path


def marks(path: Path) -> list[object]:
    assert execute_in(path, "PRAGMA integrity_check") == [("ok",)]
    return [text for (text,) in execute_in(path, "SELECT text FROM marks")]


def left_over(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith(".")]


def test_a_backup_is_one_private_intact_file(backup: Path) -> None:
    assert backup.stat().st_mode & 0o777 == 0o600
    assert marks(backup) == ["before"]
    assert left_over(backup.parent) == []
    assert not Path(f"{backup}-wal").exists()


def test_a_backup_has_committed_rows_that_are_only_in_the_log(
    database: Path, tmp_path: Path
) -> None:
    target = tmp_path / "moonhook.backup"
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("INSERT INTO marks VALUES ('in the log')")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO marks VALUES ('not committed')")
        made = manage(database.parent, "backup", str(target))

    assert made.returncode == 0, made.stderr
    assert marks(target) == ["before", "in the log"]


def test_an_existing_file_is_not_replaced_without_yes(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    refused = manage(database.parent, "backup", str(target))
    assert_refused(refused, "exists. Use --yes to replace it. Nothing was changed.")
    kept = target.read_text()

    assert kept == "precious"
    assert manage(database.parent, "backup", str(target), "--yes").returncode == 0
    assert marks(target) == ["before"]


def test_a_backup_into_a_missing_directory_is_refused(database: Path, tmp_path: Path) -> None:
    refused = manage(database.parent, "backup", str(tmp_path / "missing" / "file"))

    assert_refused(refused, "No backup was made:")
    assert not (tmp_path / "missing").exists()


def test_a_backup_of_a_damaged_database_keeps_the_earlier_one(database: Path, backup: Path) -> None:
    content = backup.read_bytes()
    damage(database)
    refused = manage(database.parent, "backup", str(backup), "--yes")

    assert_refused(refused, "No backup was made:")
    assert backup.read_bytes() == content
    assert left_over(backup.parent) == []


def damage(path: Path) -> None:
    """Overwrites pages in the middle."""
    for log in ("-wal", "-shm"):
        Path(f"{path}{log}").unlink(missing_ok=True)
    with path.open("r+b") as file:
        file.seek(40 * 4096)
        file.write(os.urandom(60 * 4096))


def test_a_restore_brings_back_the_backup(database: Path, backup: Path) -> None:
    restored = manage(database.parent, "restore", str(backup), "--yes")

    assert restored.returncode == 0, restored.stderr
    assert marks(database) == ["before"]
    assert database.stat().st_mode & 0o777 == 0o600
    assert left_over(database.parent) == []
    assert execute_in(database, "PRAGMA auto_vacuum") == [(2,)]


def test_a_restore_into_an_empty_directory_needs_no_confirmation(
    backup: Path, tmp_path: Path
) -> None:
    data = tmp_path / "new"
    restored = manage(data, "restore", str(backup))

    assert restored.returncode == 0, restored.stderr
    assert marks(data / "moonhook.sqlite3") == ["before"]
    assert (data / "moonhook.sqlite3").stat().st_mode & 0o777 == 0o600


def test_a_restore_over_a_damaged_database_moves_it_aside(database: Path, backup: Path) -> None:
    database.write_bytes(b"not a database" * 1000)
    restored = manage(database.parent, "restore", str(backup), "--yes")
    [aside] = database.parent.glob("*.damaged-*")

    assert restored.returncode == 0, restored.stderr
    assert marks(database) == ["before"]
    assert aside.read_bytes() == b"not a database" * 1000
    assert aside.name in restored.stderr


def test_a_restore_without_confirmation_is_refused(database: Path, backup: Path) -> None:
    refused = manage(database.parent, "restore", str(backup))

    assert_refused(refused, "This replaces all data of the database. Use --yes to do so.")
    assert marks(database) == ["before", "after"]


def test_a_restore_while_the_database_is_open_is_refused(database: Path, backup: Path) -> None:
    with closing(sqlite3.connect(database)) as idle:
        idle.execute("SELECT * FROM marks").fetchall()
        refused = manage(database.parent, "restore", str(backup), "--yes")

        assert_refused(refused, "the database is in use: stop every process that uses it.")
    assert marks(database) == ["before", "after"]


def test_a_missing_file_is_not_restored(database: Path, tmp_path: Path) -> None:
    refused = manage(database.parent, "restore", str(tmp_path / "missing"), "--yes")

    assert_refused(refused, "No such file or directory. Nothing was changed.")
    assert marks(database) == ["before"]


def test_a_file_that_is_no_database_is_not_restored(database: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("PGDMP but not for SQLite")
    refused = manage(database.parent, "restore", str(tmp_path / "text"), "--yes")

    assert_refused(refused, "is not a backup of a SQLite database. Nothing was changed.")
    assert marks(database) == ["before"]


@pytest.mark.parametrize("kind", ["damaged", "truncated", "empty database"])
def test_a_backup_that_is_not_intact_is_not_restored(
    kind: str, database: Path, backup: Path
) -> None:
    {
        "damaged": lambda: damage(backup),
        "truncated": lambda: os.truncate(backup, 50 * 4096),
        "empty database": lambda: (backup.unlink(), execute_in(backup, "CREATE TABLE t (a)")),
    }[kind]()
    refused = manage(database.parent, "restore", str(backup), "--yes")

    assert_refused(refused, "Nothing was changed.")
    assert "the backup is damaged" in refused.stderr
    assert marks(database) == ["before", "after"]
    assert left_over(database.parent) == []


def test_a_restore_that_is_killed_halfway_leaves_the_old_database(
    database: Path, backup: Path
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_HALFWAY, str(backup)],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "MOONHOOK_DATA_DIR": str(database.parent),
            "DJANGO_SETTINGS_MODULE": "config.settings",
        },
        capture_output=True,
        check=False,
    )

    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert Path(f"{database}-journal").stat().st_size > 0
    assert marks(database) == ["before", "after"]


@contextmanager
def prepared_postgresql(data: Path) -> Iterator[str]:
    """The name of a migrated database."""
    with empty_database() as name:
        migrated = manage(data, "migrate", "-v0", DATABASE_URL=url_of(name))
        assert migrated.returncode == 0, migrated.stderr
        yield name


def query(name: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url_of(name), autocommit=True) as database:
        cursor = database.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


needs_client = pytest.mark.skipif(shutil.which("pg_dump") is None, reason="pg_dump is missing")


@needs_postgresql
@needs_client
def test_a_postgresql_database_is_backed_up_and_restored_or_left_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "moonhook.dump"
    with prepared_postgresql(tmp_path) as name:
        url = url_of(name)
        query(name, "CREATE TABLE marks (text text)")
        made = manage(tmp_path, "backup", str(target), DATABASE_URL=url)
        query(name, "CREATE TABLE newer (id int PRIMARY KEY)")
        unconfirmed = manage(tmp_path, "restore", str(target), DATABASE_URL=url)
        with psycopg.connect(url):
            in_use = manage(tmp_path, "restore", str(target), "--yes", DATABASE_URL=url)
        truncated = tmp_path / "truncated"
        truncated.write_bytes(target.read_bytes()[: target.stat().st_size // 2])
        broken = manage(tmp_path, "restore", str(truncated), "--yes", DATABASE_URL=url)
        still_there = query(name, "SELECT to_regclass('newer') IS NOT NULL")
        restored = manage(tmp_path, "restore", str(target), "--yes", DATABASE_URL=url)
        gone = query(name, "SELECT to_regclass('newer') IS NULL, to_regclass('marks') IS NOT NULL")

        assert made.returncode == 0, made.stderr
        assert target.stat().st_mode & 0o777 == 0o600
        assert_refused(unconfirmed, "Use --yes to do so. Nothing was changed.")
        assert_refused(in_use, "in use by 1 other connections: stop every node first.")
        assert_refused(broken, "Nothing was changed.")
        assert still_there == [(True,)]
        assert restored.returncode == 0, restored.stderr
        assert gone == [(True, True)]
        assert query(name, COUNT)[0][0] > 20  # type: ignore[operator]


@needs_postgresql
@needs_client
def test_a_dump_without_migrations_is_not_restored(tmp_path: Path) -> None:
    target = tmp_path / "empty.dump"
    with empty_database() as empty, prepared_postgresql(tmp_path) as name:
        query(empty, "CREATE TABLE other (id int)")
        made = manage(tmp_path, "backup", str(target), DATABASE_URL=url_of(empty))
        before = query(name, COUNT)
        refused = manage(tmp_path, "restore", str(target), "--yes", DATABASE_URL=url_of(name))

        assert made.returncode == 0, made.stderr
        assert_refused(refused, "Nothing was changed.")
        assert query(name, COUNT) == before
        assert query(name, "SELECT to_regclass('other')") == [(None,)]


@needs_postgresql
def test_without_postgresql_s_client_no_backup_is_made(tmp_path: Path) -> None:
    with empty_database() as name:
        refused = manage(
            tmp_path,
            "backup",
            str(tmp_path / "dump"),
            DATABASE_URL=url_of(name),
            PATH=str(tmp_path),
        )

    assert_refused(refused, "No backup was made: pg_dump is not installed")
    assert left_over(tmp_path) == []
    assert not (tmp_path / "dump").exists()


@needs_postgresql
@needs_client
def test_the_password_is_not_on_a_command_line(tmp_path: Path) -> None:
    """Stands a program in for pg_dump that keeps its arguments and its environment."""
    kept = tmp_path / "kept"
    program = tmp_path / "pg_dump"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >{kept}; echo "$PGPASSWORD" >>{kept}; exit 1\n')
    program.chmod(0o700)
    refused = manage(
        tmp_path,
        "backup",
        str(tmp_path / "dump"),
        DATABASE_URL="postgres://user:hidden@127.0.0.1:5432/shop",
        PATH=str(tmp_path),
    )
    command, password = kept.read_text().splitlines()

    assert_refused(refused, "No backup was made: pg_dump: no reason given.")
    assert "hidden" not in command
    assert password == "hidden"
