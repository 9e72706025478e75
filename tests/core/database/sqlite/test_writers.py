"""Writers of a SQLite database take turns, in one process and in several."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
from limits import RateLimitItemPerMinute

from accounts.flows.organisations import create_organisation
from accounts.models import Organisation
from accounts.rate_limits.limiter import hit
from core.database.sqlite.writers import Writers, writers_of
from tests.concurrency import at_once
from tests.eventually import eventually

on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite")
THREADS = 8
WRITES = 25


def do_not_wait_for_the_lock() -> None:
    """Whoever is not alone is refused at once."""
    connection.ensure_connection()
    connection.patience_seconds = 0  # type: ignore[attr-defined]


def add_one(name: str) -> None:
    Organisation.objects.filter(name=name).update(runs_kept=F("runs_kept") + 1)


def add_one_in_a_transaction(name: str) -> None:
    with transaction.atomic():
        organisation = Organisation.objects.get(name=name)
        organisation.runs_kept = (organisation.runs_kept or 0) + 1
        organisation.save()


@pytest.fixture
def writers(monkeypatch: Any) -> Writers:
    """Of the test's database; no machine is so slow that they lose their patience."""
    writers = writers_of(connection.settings_dict["NAME"])
    monkeypatch.setattr(writers, "patience_seconds", 60)
    return writers


@on_sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("write", [add_one, add_one_in_a_transaction])
def test_no_thread_meets_another(write: Callable[[str], None], writers: Writers) -> None:
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
def test_a_turn_ends_with_what_was_written(write: Callable[[], None], writers: Writers) -> None:
    def write_and_look(_: int) -> bool:
        write()
        writers.patience_seconds = 0
        return writers.begin()

    assert at_once(1, write_and_look) == [True]
    writers.end()


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_whoever_has_waited_long_enough_asks_the_database_itself(writers: Writers) -> None:
    writers.patience_seconds = 0.01
    assert writers.begin()
    try:
        at_once(1, lambda _: commit())
        at_once(1, lambda _: write_outside_of_transactions())
    finally:
        writers.end()

    assert [each.name for each in Organisation.objects.all()] == ["Acme"]


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_the_main_thread_queues_as_a_process_of_its_own(writers: Writers) -> None:
    writers.patience_seconds = 0
    with transaction.atomic():
        create_organisation("Acme")
        assert not writers.begin()
    assert writers.begin()
    writers.end()


class InterruptionError(Exception):
    """What a signal raises."""


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_main_thread_that_is_interrupted_on_its_turn_ends_it(
    writers: Writers, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = writers_of(connection.settings_dict["NAME"], of_main_thread=True)
    begin = own.begin

    def begin_and_be_interrupted(kind: str = "") -> bool:
        begin(kind)
        raise InterruptionError

    monkeypatch.setattr(own, "begin", begin_and_be_interrupted)
    with pytest.raises(InterruptionError):
        add_one("Acme")
    with pytest.raises(InterruptionError), transaction.atomic():
        pass

    writers.patience_seconds = 0
    assert writers.begin()
    writers.end()


@on_sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fetch", ["fetchone", "fetchmany", "fetchall", "iterate"])
def test_what_a_write_returned_is_there_after_its_turn(fetch: str, writers: Writers) -> None:
    """SQLite holds its lock until the last row was asked for: the turn must not end before."""
    writers.patience_seconds = 0
    for number in range(3):
        create_organisation(f"Acme {number}")
    with connection.cursor() as cursor:
        cursor.execute("\n UPDATE accounts_organisation SET runs_kept = 7 RETURNING runs_kept")
        do_not_wait_for_the_lock()
        other = sqlite3.connect(settings.DATABASES["default"]["NAME"], timeout=0)
        other.execute("BEGIN IMMEDIATE")
        other.close()
        fetched = {
            "fetchone": lambda: [cursor.fetchone() for _ in range(4)],
            "fetchmany": lambda: [*cursor.fetchmany(2), *cursor.fetchmany(2), None],
            "fetchall": lambda: [*cursor.fetchall(), *cursor.fetchall(), None],
            "iterate": lambda: [*cursor, None],
        }[fetch]()

    assert fetched == [(7,), (7,), (7,), None]


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_statement_that_begins_with_a_blank_waits_for_its_turn_too(writers: Writers) -> None:
    """The rate limits' own does."""
    began: list[str] = []
    begin = writers.begin

    def count(window: RateLimitItemPerMinute) -> None:
        hit([window], "test")

    def tell(kind: str = "") -> bool:
        began.append(kind)
        return begin(kind)

    writers.begin = tell  # type: ignore[method-assign]
    try:
        at_once(1, lambda _: count(RateLimitItemPerMinute(1)))
    finally:
        del writers.begin

    assert began == ["accounts_ratewindow"]


def test_a_kind_of_many_writes_lets_another_kind_come_in_between(tmp_path: Path) -> None:
    writers = Writers(str(tmp_path / "writers"))
    writers.patience_seconds = 60
    order: list[str] = []

    def write(kind: str) -> None:
        assert writers.begin(kind)
        order.append(kind)
        writers.end()

    assert writers.begin("first")
    with ThreadPoolExecutor(THREADS) as executor:
        for number, kind in enumerate(["flood"] * (THREADS - 1) + ["run"], 1):
            executor.submit(write, kind)
            eventually(lambda number=number: waiting_for(writers) == number)
        writers.end()

    assert order == ["flood", "run"] + ["flood"] * (THREADS - 2)


def waiting_for(writers: Writers) -> int:
    assert writers._turn is not None
    return sum(map(len, writers._turn._waiting.values()))


def test_whoever_has_waited_in_vain_holds_up_nobody(tmp_path: Path) -> None:
    writers = Writers(str(tmp_path / "writers"))
    writers.patience_seconds = 0.01
    assert writers.begin()
    assert at_once(3, lambda _: writers.begin()) == [False] * 3
    writers.end()

    assert writers.begin()
    writers.end()


# A process that has its turn until its input ends.
NEIGHBOUR = """
import sys
from core.database.sqlite.writers import writers_of
assert writers_of(sys.argv[1]).begin()
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
    writers = Writers(f"{tmp_path / 'database'}-writers")
    writers.patience_seconds = 0.1
    # Twice: whoever gives up holds up nobody of its own.
    assert [writers.begin(), writers.begin()] == [False, False]

    writers.patience_seconds = 60
    with ThreadPoolExecutor(1) as executor:
        waiting = executor.submit(writers.begin)
        if end == "leaves":
            assert neighbour.stdin is not None
            neighbour.stdin.close()
        else:
            neighbour.kill()
        assert waiting.result()


# A process whose threads write without a pause, and tell of each turn.
CROWD = """
import sys, threading, time
from core.database.sqlite.writers import Writers, writers_of
Writers.patience_seconds = 60
writers = writers_of(sys.argv[1])
def write():
    while True:
        assert writers.begin()
        with open(sys.argv[1], "a") as turns:
            turns.write(".")
        time.sleep(0.005)
        writers.end()
for _ in range(4):
    threading.Thread(target=write, daemon=True).start()
sys.stdin.read()
"""
# Those of the crowd that a writer from outside may find under way before it is the next.
FEW = 5


def test_a_busy_process_lets_the_others_come_in_between(tmp_path: Path) -> None:
    database = tmp_path / "database"
    writers = Writers(f"{database}-writers")
    writers.patience_seconds = 60
    passed_by = []
    with subprocess.Popen(
        [sys.executable, "-c", CROWD, str(database)], stdin=subprocess.PIPE, cwd=settings.BASE_DIR
    ) as crowd:
        eventually(lambda: database.exists() and database.stat().st_size > FEW)
        for _ in range(10):
            before = database.stat().st_size
            assert writers.begin()
            passed_by.append(database.stat().st_size - before)
            writers.end()
        crowd.kill()

    assert max(passed_by) <= FEW


FORK = """
import os, sys, time
from core.database.sqlite.writers import Writers, writers_of
Writers.patience_seconds = 10
assert writers_of(sys.argv[1]).begin()
if os.fork() == 0:
    assert writers_of(sys.argv[1]).begin()
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


def test_where_there_can_be_no_such_file_nobody_queues(tmp_path: Path) -> None:
    writers = Writers(str(tmp_path / "gone" / "database-writers"))

    assert [writers.begin(), writers.begin()] == [False, False]
