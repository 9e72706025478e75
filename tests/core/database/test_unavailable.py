"""Which errors say that the database is unavailable, and which that a statement is wrong."""

import gc
import sqlite3
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import (
    DatabaseError,
    IntegrityError,
    InternalError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from tests.unavailable import read_only_database

on_postgresql = pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL")
on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite")
of_transactions = pytest.mark.django_db(transaction=True)


def execute(database: BaseDatabaseWrapper, *statements: str) -> None:
    with database.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def other_connection() -> BaseDatabaseWrapper:
    return connections.create_connection("default")


# --- PostgreSQL ----------------------------------------------------------------------------------

RAISE = "DO $$ BEGIN RAISE EXCEPTION 'told to' USING ERRCODE = '{}'; END $$"


@on_postgresql
@of_transactions
@pytest.mark.parametrize(
    "sqlstate",
    [
        "08006",
        "25006",
        "25P03",
        "40001",
        "40P01",
        "53100",
        "53200",
        "53300",
        "55P03",
        "57014",
        "57P01",
        "57P03",
        "58030",
        "XX001",
    ],
)
def test_a_state_of_postgresql_is_told_by_its_sqlstate(sqlstate: str) -> None:
    with pytest.raises(DatabaseUnavailable, match="told to") as caught:
        execute(connection, RAISE.format(sqlstate))

    cause = caught.value.__cause__
    assert isinstance(cause, psycopg.Error)
    assert cause.diag.sqlstate == sqlstate


@on_postgresql
@of_transactions
@pytest.mark.parametrize(
    "sqlstate", ["22003", "23514", "25P02", "42501", "42P01", "54000", "P0001"]
)
def test_an_error_of_content_is_not_a_state_of_postgresql(sqlstate: str) -> None:
    with pytest.raises(DatabaseError, match="told to") as caught:
        execute(connection, RAISE.format(sqlstate))

    assert not isinstance(caught.value, DatabaseUnavailable)


@on_postgresql
@of_transactions
def test_a_read_only_postgresql_is_unavailable(acme: Organisation) -> None:
    with pytest.raises(DatabaseUnavailable, match="read-only"), read_only_database():
        Organisation.objects.update(name="Globex")

    acme.refresh_from_db()
    assert acme.name == "Acme"


@on_postgresql
@of_transactions
def test_a_statement_after_a_failed_one_is_a_defect() -> None:
    execute(connection, "BEGIN")
    with pytest.raises(DatabaseError):
        execute(connection, "SELECT 1 / 0")
    with pytest.raises(InternalError) as caught:
        execute(connection, "SELECT 1")
    execute(connection, "ROLLBACK")

    assert not isinstance(caught.value, DatabaseUnavailable)


def begin() -> None:
    with transaction.atomic():
        pass


def query() -> None:
    Organisation.objects.exists()


@on_postgresql
@of_transactions
@pytest.mark.parametrize("use", [begin, query])
def test_whatever_is_done_on_a_lost_connection_finds_it_unavailable(
    use: Callable[[], None],
) -> None:
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    other = other_connection()
    execute(other, f"SELECT pg_terminate_backend({pid}, 5000)")
    other.close()
    with pytest.raises(DatabaseUnavailable):
        query()

    with pytest.raises(DatabaseUnavailable):
        use()
    connection.close()


@on_postgresql
@of_transactions
def test_a_commit_that_ends_the_connection_finds_it_unavailable() -> None:
    pid = "SELECT pg_terminate_backend(pg_backend_pid())"
    with pytest.raises(DatabaseUnavailable), transaction.atomic():
        execute(connection, pid)

    assert Organisation.objects.exists() is False


# --- SQLite --------------------------------------------------------------------------------------


@on_sqlite
@of_transactions
def test_a_full_sqlite_is_unavailable(acme: Organisation) -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA page_count")
        pages = cursor.fetchone()[0]
        cursor.execute("PRAGMA max_page_count")
        before = cursor.fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages}")
    try:
        with pytest.raises(DatabaseUnavailable, match="full"):
            Organisation.objects.bulk_create(
                [Organisation(name=f"{each} {'x' * 180}") for each in range(2000)]
            )
    finally:
        execute(connection, f"PRAGMA max_page_count = {before}")

    assert Organisation.objects.count() == 1


@on_sqlite
@of_transactions
def test_a_locked_sqlite_is_unavailable(acme: Organisation) -> None:
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA database_list")
        file = cursor.fetchone()[2]
    connection.lock_timeout_seconds = 0  # type: ignore[attr-defined]
    other = sqlite3.connect(file)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(DatabaseUnavailable, match="locked"):
            Organisation.objects.update(name="Globex")
    finally:
        other.close()
        connection.close()


@on_sqlite
@of_transactions
def test_a_read_only_sqlite_is_unavailable(acme: Organisation) -> None:
    with pytest.raises(DatabaseUnavailable, match="readonly"), read_only_database():
        Organisation.objects.update(name="Globex")

    acme.refresh_from_db()
    assert acme.name == "Acme"


def no_database(path: Path) -> None:
    path.write_bytes(b"This is a text of some length, and not a database." * 100)


def no_directory(path: Path) -> None:
    path.parent.rmdir()


def damaged(path: Path) -> None:
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE t (c)")
        file.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 500)
    file.close()
    content = bytearray(path.read_bytes())
    content[4096 : 20 * 4096] = b"\xff" * (19 * 4096)
    path.write_bytes(content)


@on_sqlite
@of_transactions
@pytest.mark.parametrize("spoil", [no_database, no_directory, damaged])
def test_a_file_that_is_no_sound_database_is_unavailable(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "data" / "database.sqlite3"
    path.parent.mkdir()
    spoil(path)
    other = other_connection()
    other.settings_dict = other.settings_dict | {"NAME": str(path)}
    with warnings.catch_warnings():
        # Django does not close a connection whose first statements fail; the collector does.
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises(DatabaseUnavailable):
            execute(other, "SELECT count(*) FROM t")
        other.close()
        gc.collect()


@on_sqlite
@of_transactions
def test_a_deadline_of_statements_finds_sqlite_unavailable() -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    )
    database: Any = connection
    with pytest.raises(DatabaseUnavailable, match="interrupted"), database.statements_end_by(0.0):
        execute(connection, endless)


@on_sqlite
@of_transactions
@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("SELECT * FROM nothing_of_that_name", OperationalError),
        ("SELEC 1", OperationalError),
        ("INSERT INTO accounts_organisation (id) VALUES ('1')", IntegrityError),
        ("SELECT 1; SELECT 2", ProgrammingError),
    ],
)
def test_an_error_of_content_is_not_a_state_of_sqlite(
    statement: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as caught:
        execute(connection, statement)

    assert not isinstance(caught.value, DatabaseUnavailable)
