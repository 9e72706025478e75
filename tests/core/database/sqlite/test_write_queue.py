"""The fair queue of the writers of a SQLite database, in one process and in several."""

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

from accounts.flows.organisations import create_organisation
from accounts.models import Organisation
from accounts.rate_limits.counters import Window
from accounts.rate_limits.limiter import hit
from core.database.sqlite.write_queue import WriteQueue, write_queue_of
from tests.concurrency import at_once
from tests.eventually import eventually

on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="about SQLite")
THREADS = 8
WRITES = 25


def do_not_wait_for_the_lock() -> None:
    """A second writer is refused at once."""
    connection.ensure_connection()
    connection.lock_timeout_seconds = 0  # type: ignore[attr-defined]


def add_one(name: str) -> None:
    Organisation.objects.filter(name=name).update(runs_kept=F("runs_kept") + 1)


def add_one_in_a_transaction(name: str) -> None:
    with transaction.atomic():
        organisation = Organisation.objects.get(name=name)
        organisation.runs_kept = (organisation.runs_kept or 0) + 1
        organisation.save()


@pytest.fixture
def queue(monkeypatch: Any) -> WriteQueue:
    """The queue of the test's database, with a wait that suffices on slow machines."""
    queue = write_queue_of(connection.settings_dict["NAME"])
    monkeypatch.setattr(queue, "max_wait_seconds", 60)
    return queue


@on_sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("write", [add_one, add_one_in_a_transaction])
def test_threads_write_one_at_a_time(write: Callable[[str], None], queue: WriteQueue) -> None:
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
    organisation = create_organisation("Globex")
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
    """Raises as if the disk were full."""
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
def test_a_turn_ends_with_what_was_written(write: Callable[[], None], queue: WriteQueue) -> None:
    def write_and_look(_: int) -> bool:
        write()
        queue.max_wait_seconds = 0
        return queue.begin()

    assert at_once(1, write_and_look) == [True]
    queue.end()


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_a_writer_that_waited_too_long_goes_on_to_the_database(queue: WriteQueue) -> None:
    queue.max_wait_seconds = 0.01
    assert queue.begin()
    try:
        at_once(1, lambda _: commit())
        at_once(1, lambda _: write_outside_of_transactions())
    finally:
        queue.end()

    assert [each.name for each in Organisation.objects.all()] == ["Acme"]


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_the_main_thread_queues_as_a_process_of_its_own(queue: WriteQueue) -> None:
    queue.max_wait_seconds = 0
    with transaction.atomic():
        create_organisation("Acme")
        assert not queue.begin()
    assert queue.begin()
    queue.end()


class InterruptionError(Exception):
    """Raised by a signal handler."""


@on_sqlite
@pytest.mark.django_db(transaction=True)
def test_an_interrupted_main_thread_ends_its_turn(
    queue: WriteQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write_queue_of(connection.settings_dict["NAME"], of_main_thread=True)
    begin = own.begin

    def begin_and_be_interrupted(kind: str = "") -> bool:
        begin(kind)
        raise InterruptionError

    monkeypatch.setattr(own, "begin", begin_and_be_interrupted)
    with pytest.raises(InterruptionError):
        add_one("Acme")
    with pytest.raises(InterruptionError), transaction.atomic():
        pass

    queue.max_wait_seconds = 0
    assert queue.begin()
    queue.end()


@on_sqlite
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fetch", ["fetchone", "fetchmany", "fetchall", "iterate"])
def test_the_rows_that_a_write_returns_are_there_after_its_turn(
    fetch: str, queue: WriteQueue
) -> None:
    """SQLite holds its lock until the last row is fetched, so the turn must not end earlier."""
    queue.max_wait_seconds = 0
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
def test_a_statement_that_begins_with_a_blank_waits_for_its_turn_too(queue: WriteQueue) -> None:
    """The statement of the rate limits begins with a blank."""
    began: list[str] = []
    begin = queue.begin

    def count(window: Window) -> None:
        hit([window], "test")

    def tell(kind: str = "") -> bool:
        began.append(kind)
        return begin(kind)

    queue.begin = tell  # type: ignore[method-assign]
    try:
        at_once(1, lambda _: count(Window(1, 60)))
    finally:
        del queue.begin

    assert began == ["accounts_ratecounter"]


def test_many_writes_of_one_kind_do_not_delay_another_kind(tmp_path: Path) -> None:
    queue = WriteQueue(str(tmp_path / "writers"))
    queue.max_wait_seconds = 60
    order: list[str] = []

    def write(kind: str) -> None:
        assert queue.begin(kind)
        order.append(kind)
        queue.end()

    assert queue.begin("first")
    with ThreadPoolExecutor(THREADS) as executor:
        for number, kind in enumerate(["flood"] * (THREADS - 1) + ["run"], 1):
            executor.submit(write, kind)
            eventually(lambda number=number: waiting_for(queue) == number)
        queue.end()

    assert order == ["flood", "run"] + ["flood"] * (THREADS - 2)


def waiting_for(queue: WriteQueue) -> int:
    assert queue._threads is not None
    return sum(map(len, queue._threads._waiting.values()))


def test_a_writer_that_gave_up_delays_nobody(tmp_path: Path) -> None:
    queue = WriteQueue(str(tmp_path / "writers"))
    queue.max_wait_seconds = 0.01
    assert queue.begin()
    assert at_once(3, lambda _: queue.begin()) == [False] * 3
    queue.end()

    assert queue.begin()
    queue.end()


def test_a_waiter_that_gives_up_at_the_last_moment_does_not_leave_the_file_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, of_another_process = (WriteQueue(str(tmp_path / "writers")) for _ in range(2))
    of_another_process.max_wait_seconds = 0
    assert queue.begin()
    assert not of_another_process.begin()
    # It still waits when the turn is about to end, and no longer when it is handed over.
    monkeypatch.setattr(queue._threads, "is_awaited", lambda: True)
    queue.end()

    assert of_another_process.begin()
    of_another_process.end()


# A process that has its turn until its input ends.
NEIGHBOUR = """
import sys
from core.database.sqlite.write_queue import write_queue_of
assert write_queue_of(sys.argv[1]).begin()
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
    queue = WriteQueue(f"{tmp_path / 'database'}-writers")
    queue.max_wait_seconds = 0.1
    # Twice: a writer that gives up does not block its own process.
    assert [queue.begin(), queue.begin()] == [False, False]

    queue.max_wait_seconds = 60
    with ThreadPoolExecutor(1) as executor:
        waiting = executor.submit(queue.begin)
        if end == "leaves":
            assert neighbour.stdin is not None
            neighbour.stdin.close()
        else:
            neighbour.kill()
        assert waiting.result()


# A process whose threads write without a pause, and tell of each turn.
CROWD = """
import sys, threading, time
from core.database.sqlite.write_queue import WriteQueue, write_queue_of
WriteQueue.max_wait_seconds = 60
queue = write_queue_of(sys.argv[1])
def write():
    while True:
        assert queue.begin()
        with open(sys.argv[1], "a") as turns:
            turns.write(".")
        time.sleep(0.005)
        queue.end()
for _ in range(4):
    threading.Thread(target=write, daemon=True).start()
sys.stdin.read()
"""
# Those of the crowd that a writer from outside may find under way before it is the next.
FEW = 5


def test_a_busy_process_lets_others_write_in_between(tmp_path: Path) -> None:
    database = tmp_path / "database"
    queue = WriteQueue(f"{database}-writers")
    queue.max_wait_seconds = 60
    passed_by = []
    with subprocess.Popen(
        [sys.executable, "-c", CROWD, str(database)], stdin=subprocess.PIPE, cwd=settings.BASE_DIR
    ) as crowd:
        eventually(lambda: database.exists() and database.stat().st_size > FEW)
        for _ in range(10):
            before = database.stat().st_size
            assert queue.begin()
            passed_by.append(database.stat().st_size - before)
            queue.end()
        crowd.kill()

    assert max(passed_by) <= FEW


FORK = """
import os, sys, time
from core.database.sqlite.write_queue import WriteQueue, write_queue_of
WriteQueue.max_wait_seconds = 10
assert write_queue_of(sys.argv[1]).begin()
if os.fork() == 0:
    assert write_queue_of(sys.argv[1]).begin()
    print("child", flush=True)
    os._exit(0)
time.sleep(0.2)
print("parent", flush=True)
write_queue_of(sys.argv[1]).end()
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


def test_without_a_lock_file_there_is_no_queue(tmp_path: Path) -> None:
    queue = WriteQueue(str(tmp_path / "gone" / "database-writers"))

    assert [queue.begin(), queue.begin()] == [False, False]
