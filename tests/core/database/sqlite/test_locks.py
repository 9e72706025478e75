"""Connections of one process keep each other's locks."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import connections

from core.database.sqlite.base import DatabaseWrapper

pytestmark = pytest.mark.django_db

# Each management command does this to the database of a running server.
OPEN_AND_CLOSE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT count(*) FROM item").fetchone()[0])
connection.close()
"""


@contextmanager
def connected(path: Path) -> Iterator[DatabaseWrapper]:
    settings = connections["default"].settings_dict | {
        "ENGINE": "core.database.sqlite",
        "NAME": str(path),
        "OPTIONS": {"init_command": "PRAGMA journal_mode=WAL"},
    }
    with closing(DatabaseWrapper(settings, "other")) as connection:
        connection.connect()
        yield connection


def insert(connection: DatabaseWrapper) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO item VALUES (1)")


def test_another_process_keeps_the_wal_of_open_connections(tmp_path: Path) -> None:
    path = tmp_path / "database.sqlite3"
    with connected(path) as first:
        with first.cursor() as cursor:
            cursor.execute("CREATE TABLE item (number integer)")
        insert(first)
        with connected(path) as second:
            insert(second)
            before = (tmp_path / "database.sqlite3-wal").stat().st_ino
            seen = subprocess.run(
                [sys.executable, "-c", OPEN_AND_CLOSE, str(path)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            after = (tmp_path / "database.sqlite3-wal").stat().st_ino
            insert(first)
            with closing(sqlite3.connect(path)) as late:
                count = late.execute("SELECT count(*) FROM item").fetchone()[0]

    assert seen == "2\n"
    assert after == before
    assert count == 3
