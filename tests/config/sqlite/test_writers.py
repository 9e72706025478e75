"""Writers of a SQLite database take turns, in one process and in several."""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import (
    IntegrityError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from django.db.models import F

from accounts.flows.create_organisation import create_organisation
from accounts.models import Organisation
from config.sqlite.writers import Writers, writers_of
from tests.concurrency import at_once
from tests.eventually import eventually

on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite")
THREADS = 8
WRITES = 25


def do_not_wait_for_the_lock() -> None:
    """Whoever is not alone is refused at once."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 0")


def add_one(name: str) -> None:
    Organisation.objects.filter(name=name).update(runs_kept=F("runs_kept") + 1)


def add_one_in_a_transaction(name: str) -> None:
    with transaction.atomic():
        organisation = Organisation.objects.get(name=name)
        organisation.runs_kept = (organisation.runs_kept or 0) + 1
        organisation.save()


@on_sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("write", [add_one, add_one_in_a_transaction])
def test_no_thread_meets_another(write: Callable[[str], None]) -> None:
    Organisation.objects.filter(pk=create_organisation("Acme").pk).update(runs_kept=0)

    def work(_: int) -> None:
        do_not_wait_for_the_lock()
        for _ in range(WRITES):
            write("Acme")

    at_once(THREADS, work)

    assert Organisation.objects.get().runs_kept == THREADS * WRITES


def commit() -> None:
    with transaction.atomic():
        create_organisation("Acme")


def write_outside_of_transactions() -> None:
    organisation = create_organisation("Acme")
    Organisation.objects.filter(pk=organisation.pk).update(runs_kept=1)
    Organisation.objects.filter(pk=organisation.pk).delete()


def fail() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        raise ZeroDivisionError


def be_refused() -> None:
    organisation = create_organisation("Acme")
    with pytest.raises(IntegrityError):
        Organisation.objects.bulk_create([Organisation(pk=organisation.pk, name="Twin")])


def lose_the_connection() -> None:
    with pytest.raises(ProgrammingError):
        _close_and_write()


@transaction.atomic
def _close_and_write() -> None:
    connection.close()
    Organisation.objects.create(name="Acme")


@transaction.atomic
def be_rolled_back_by_the_database() -> None:
    """As when the disk is full."""
    connection.connection.rollback()
    Organisation.objects.create(name="Acme")


def find_it_locked() -> None:
    do_not_wait_for_the_lock()
    other = sqlite3.connect(settings.DATABASES["default"]["NAME"])
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(OperationalError, match="database is locked"), transaction.atomic():
            pass
    finally:
        other.close()


@on_sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "write",
    [
        commit,
        write_outside_of_transactions,
        fail,
        be_refused,
        lose_the_connection,
        be_rolled_back_by_the_database,
        find_it_locked,
    ],
)
def test_a_turn_ends_with_what_was_written(write: Callable[[], None]) -> None:
    write()

    writers = writers_of(str(connection.settings_dict["NAME"]))
    writers.begin(patience_seconds=0)
    writers.end()
    connection.close()


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_whoever_waits_too_long_is_told_that_it_is_locked(monkeypatch: Any) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.01)
    writers = writers_of(str(connection.settings_dict["NAME"]))
    writers.begin(patience_seconds=0)
    try:
        with pytest.raises(OperationalError, match="database is locked"):
            create_organisation("Acme")
    finally:
        writers.end()

    assert not Organisation.objects.exists()
    create_organisation("Acme")


# A process that has its turn until its input ends.
NEIGHBOUR = """
import sys
from config.sqlite.writers import writers_of
writers_of(sys.argv[1]).begin(patience_seconds=0)
print("begun", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def neighbour(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", NEIGHBOUR, str(tmp_path / "database")]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=settings.BASE_DIR
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        yield process
        process.kill()


@pytest.mark.parametrize("end", ["leaves", "is killed"])
def test_a_writer_waits_for_those_of_other_processes(
    tmp_path: Path, neighbour: "subprocess.Popen[str]", end: str
) -> None:
    has_begun = threading.Event()
    writers = Writers(f"{tmp_path / 'database'}-writers")

    def write() -> None:
        writers.begin(patience_seconds=0)
        has_begun.set()
        writers.end()

    thread = threading.Thread(target=write)
    thread.start()
    waited = not has_begun.wait(0.3)
    if end == "leaves":
        assert neighbour.stdin is not None
        neighbour.stdin.close()
    else:
        neighbour.kill()
    eventually(has_begun.is_set)
    thread.join()

    assert waited


FORK = """
import os, sys, time
from config.sqlite.writers import writers_of
writers_of(sys.argv[1]).begin(patience_seconds=0)
if os.fork() == 0:
    writers_of(sys.argv[1]).begin(patience_seconds=0)
    print("child", flush=True)
    os._exit(0)
time.sleep(0.2)
print("parent", flush=True)
writers_of(sys.argv[1]).end()
os.wait()
"""


def test_a_child_queues_behind_its_parent(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path / "database")],
        capture_output=True,
        text=True,
        cwd=settings.BASE_DIR,
        timeout=60,
        check=True,
    )

    assert (ended.stdout, ended.stderr) == ("parent\nchild\n", "")


def test_a_place_where_nobody_may_write_is_an_error_of_the_database(tmp_path: Path) -> None:
    writers = Writers(str(tmp_path / "gone" / "database-writers"))

    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match="No such file"):
            writers.begin(patience_seconds=0)
