"""Commits of green threads leave checkpoints to a thread."""

import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection, connections
from django.utils import timezone

from accounts.models import Organisation
from core.database.sqlite import base
from core.database.sqlite.base import CHANGES_BETWEEN, Checkpoints
from core.waiting import DatabaseThreads, GreenLoop
from tests.eventually import eventually

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="a matter of SQLite"),
]


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process's own counts what tests before have changed."""
    monkeypatch.setattr(base, "checkpoints", Checkpoints())


def write(count: int) -> None:
    for number in range(count):
        Organisation.objects.create(
            id=uuid.uuid4(), name=f"Shop {number}", created_at=timezone.now()
        )


def in_green_thread(call: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_connections", connections._connections)
    with DatabaseThreads(2) as threads:
        GreenLoop(most=2, executor=threads).run(call)


def count_without_wal() -> int:
    """How many organisations the database file itself has."""
    path = Path(str(connection.settings_dict["NAME"]))
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as reader:
        count: int = reader.execute("SELECT count(*) FROM accounts_organisation").fetchone()[0]
        return count


def empty_wal() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_a_thread_makes_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    empty_wal()
    assert count_without_wal() == 0

    in_green_thread(lambda: write(CHANGES_BETWEEN + 5), monkeypatch)

    eventually(lambda: count_without_wal() >= CHANGES_BETWEEN)


def test_not_after_each_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    empty_wal()
    in_green_thread(lambda: write(5), monkeypatch)

    assert Organisation.objects.count() == 5
    assert count_without_wal() == 0
