"""Green threads on a scheduler that the test's own thread drives."""

import contextvars
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from django.db import connections

from core import green_threads
from core.database.threads import DatabaseThreads
from core.green_threads import READABLE, Bell, GreenLoop, WakeUp
from tests.core.green_driver import LONG_SECONDS, Driver


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def driver(stack: ExitStack) -> Driver:
    return Driver(stack)


@pytest.fixture
def separate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Green threads have connections of their own for the length of the test."""
    monkeypatch.setattr(connections, "_connections", connections._connections)
    green_threads.separate_connections()


# --- Waiting for files -------------------------------------------------------------------------


def test_others_go_on_while_one_waits_for_a_file(driver: Driver) -> None:
    ours, theirs = driver.pair()
    driver.waits_for(ours, "waiter")
    driver.start(lambda: driver.told.append("other"))
    driver.turn()
    told_before = list(driver.told)
    theirs.send(b"x")

    driver.run_until_told("other", ("waiter", READABLE))
    assert told_before == ["other"]


def test_a_wait_for_a_file_ends_at_its_deadline(driver: Driver) -> None:
    ours, _ = driver.pair()
    driver.waits_for(ours, "waiter", seconds=0.01)

    driver.run_until_told(("waiter", 0))


def test_an_event_after_the_deadline_resumes_nobody(driver: Driver) -> None:
    ours, theirs = driver.pair()
    other, _ = driver.pair()

    def wait_twice() -> None:
        first = green_threads.wait_for(ours.fileno(), READABLE, time.monotonic())
        second = green_threads.wait_for(other.fileno(), READABLE, time.monotonic() + 0.2)
        driver.told.append((first, second))

    driver.start(wait_twice)
    driver.turn()
    theirs.send(b"x")

    driver.run_until_told((0, 0))


def test_an_event_and_the_deadline_in_the_same_pass_resume_once(driver: Driver) -> None:
    ours, theirs = driver.pair()

    def wait_twice() -> None:
        first = green_threads.wait_for(ours.fileno(), READABLE, time.monotonic() + 0.02)
        driver.told.append(first)
        green_threads.sleep(0.1)
        driver.told.append("slept")

    driver.start(wait_twice)
    theirs.send(b"x")
    time.sleep(0.03)
    woken_at = time.monotonic()

    driver.run_until_told(READABLE, "slept")
    assert time.monotonic() - woken_at >= 0.1


def test_a_hang_up_ends_a_wait(driver: Driver) -> None:
    ours, theirs = driver.pair()
    driver.waits_for(ours, "waiter")
    theirs.close()

    driver.run_until(lambda: driver.told)
    [(_, events)] = driver.told
    assert events & READABLE


def test_the_same_file_is_waited_for_again(driver: Driver) -> None:
    ours, theirs = driver.pair()

    def read_twice() -> None:
        for _ in range(2):
            green_threads.wait_for(ours.fileno(), READABLE, time.monotonic() + LONG_SECONDS)
            driver.told.append(ours.recv(1))

    driver.start(read_twice)
    theirs.send(b"a")
    driver.run_until(lambda: driver.told)
    theirs.send(b"b")

    driver.run_until_told(b"a", b"b")


def test_a_file_with_a_reused_number_belongs_to_the_later_waiter(driver: Driver) -> None:
    """The first waiter's file is closed during its wait, so only its deadline can end it."""
    ours, _ = driver.pair()
    number = ours.fileno()
    driver.waits_for(ours, "first", seconds=0.05)
    later, theirs = driver.pair()
    os.dup2(later.fileno(), number)
    driver.waits_for(ours, "later")
    driver.run_until(lambda: driver.told)
    theirs.send(b"x")

    driver.run_until_told(("first", 0), ("later", READABLE))


def test_a_wait_for_a_closed_file_fails(driver: Driver) -> None:
    ours, _ = driver.pair()
    number = ours.fileno()
    ours.close()

    def wait() -> None:
        with pytest.raises(OSError, match="Bad file descriptor"):
            green_threads.wait_for(number, READABLE, time.monotonic() + LONG_SECONDS)
        driver.told.append("refused")

    driver.start(wait)

    assert driver.told == ["refused"]
    assert not driver.scheduler._by_file


def test_waits_that_have_ended_leave_no_timers(driver: Driver) -> None:
    ours, theirs = driver.pair()
    theirs.send(b"x")

    def wait_often() -> None:
        for _ in range(5000):
            green_threads.wait_for(ours.fileno(), READABLE, time.monotonic() + LONG_SECONDS)
        green_threads.wait_for(ours.fileno(), READABLE, math.inf)
        driver.told.append("done")

    # The earliest timer, which stays to the end.
    driver.start(lambda: green_threads.sleep(LONG_SECONDS / 2), wait_often)
    driver.run_until_told("done")

    assert len(driver.scheduler._timers) < 2000


# --- WakeUp ------------------------------------------------------------------------------------


def test_a_wake_up_that_was_set_before_does_not_wait(driver: Driver) -> None:
    def wait() -> None:
        wake_up = WakeUp()
        wake_up.set()
        driver.told.append(wake_up.wait())

    driver.start(wait)

    assert driver.told == [True]


def test_a_green_thread_wakes_another(driver: Driver) -> None:
    wake_ups: list[WakeUp] = []

    def wait() -> None:
        wake_ups.append(WakeUp())
        driver.told.append(wake_ups[0].wait(LONG_SECONDS))

    def wake() -> None:
        wake_ups[0].set()

    driver.start(wait, wake)

    driver.run_until_told(True)


def test_another_thread_wakes_a_green_thread(driver: Driver) -> None:
    def wait() -> None:
        wake_up = WakeUp()
        threading.Timer(0.05, wake_up.set).start()
        driver.told.append(wake_up.wait())

    driver.start(wait)

    driver.run_until_told(True)


def test_a_wake_up_that_is_not_set_times_out(driver: Driver) -> None:
    wake_ups: list[WakeUp] = []

    def wait() -> None:
        wake_ups.append(WakeUp())
        driver.told.append(wake_ups[0].wait(0.01))
        green_threads.sleep(0.1)
        driver.told.append("slept")

    driver.start(wait)
    driver.run_until(lambda: driver.told)
    set_at = time.monotonic()
    wake_ups[0].set()

    driver.run_until_told(False, "slept")
    assert time.monotonic() - set_at >= 0.09


def test_a_wake_up_set_in_the_pass_of_its_timeout_counts_as_set_and_resumes_once(
    driver: Driver,
) -> None:
    wake_ups: list[WakeUp] = []

    def set_late() -> None:
        green_threads.sleep(0.01)
        wake_ups[0].set()
        driver.told.append("set")

    def wait() -> None:
        wake_ups.append(WakeUp())
        driver.told.append(wake_ups[0].wait(0.02))
        green_threads.sleep(0.05)
        driver.told.append("slept")

    driver.start(set_late, wait)
    # Both are due now: the one that sets goes first.
    time.sleep(0.03)
    driver.turn()
    told = list(driver.told)

    driver.run_until_told("set", True, "slept")
    assert told == ["set", True]


# --- Other threads -----------------------------------------------------------------------------


def test_a_call_in_a_thread_returns_its_result_while_others_go_on(driver: Driver) -> None:
    may_end = threading.Event()

    def ask() -> None:
        driver.told.append(
            green_threads.in_thread(lambda: (may_end.wait(LONG_SECONDS), threading.get_ident()))
        )

    driver.start(ask, lambda: driver.told.append("other"))
    driver.turn()
    told_before = list(driver.told)
    may_end.set()
    driver.run_until(lambda: len(driver.told) == 2)

    assert told_before == ["other"]
    has_waited, thread_id = driver.told[1]
    assert has_waited
    assert thread_id != threading.get_ident()


def test_a_call_in_a_thread_raises_its_exception(driver: Driver) -> None:
    def refuse() -> None:
        raise LookupError("not here")

    def ask() -> None:
        with pytest.raises(LookupError, match="not here"):
            green_threads.in_thread(refuse)
        driver.told.append("raised")

    driver.start(ask)

    driver.run_until_told("raised")


def test_a_call_in_a_thread_sees_the_callers_context(driver: Driver) -> None:
    name = contextvars.ContextVar("name", default="nobody")

    def ask_as(caller: str) -> Callable[[], None]:
        def ask() -> None:
            name.set(caller)
            green_threads.give_way()
            driver.told.append((caller, green_threads.in_thread(name.get), name.get()))

        return ask

    driver.start(ask_as("alice"), ask_as("bob"))
    driver.run_until(lambda: len(driver.told) == 2)

    assert sorted(driver.told) == [("alice", "alice", "alice"), ("bob", "bob", "bob")]
    assert name.get() == "nobody"


@pytest.mark.usefixtures("separate")
def test_a_call_in_a_thread_has_the_connections_of_that_thread(driver: Driver) -> None:
    def ask() -> None:
        of_thread = green_threads.in_thread(lambda: connections["default"])
        driver.told.append(of_thread is connections["default"])

    driver.start(ask)

    driver.run_until_told(False)


# --- Order, and how many -----------------------------------------------------------------------


def test_giving_way_continues_after_those_that_can_go_on(driver: Driver) -> None:
    def give_way() -> None:
        green_threads.sleep(0)
        green_threads.give_way()
        driver.told.append("gave way")

    def sleep() -> None:
        green_threads.sleep(0)
        driver.told.append("slept")

    driver.start(give_way, sleep)
    driver.turn()

    assert driver.told == ["slept", "gave way"]


def test_one_that_gives_way_without_end_leaves_the_thread_to_files_and_timers(
    driver: Driver,
) -> None:
    ours, theirs = driver.pair()
    driver.waits_for(ours, "waiter")

    def give_way_until_told() -> None:
        threading.Timer(0.05, theirs.send, [b"x"]).start()
        ends_at = time.monotonic() + LONG_SECONDS
        while not driver.told and time.monotonic() < ends_at:
            green_threads.give_way()

    started = time.monotonic()
    driver.start(give_way_until_told)

    driver.run_until_told(("waiter", READABLE))
    assert time.monotonic() - started < LONG_SECONDS / 2


def test_at_most_so_many_run_at_once_and_the_rest_in_order(stack: ExitStack) -> None:
    driver = Driver(stack, most=2)
    wake_ups: dict[int, WakeUp] = {}

    def wait_as(number: int) -> Callable[[], None]:
        def wait() -> None:
            driver.told.append(number)
            wake_ups[number] = WakeUp()
            wake_ups[number].wait()

        return wait

    driver.start(*map(wait_as, range(5)))
    driver.turn()
    told_first, queued = list(driver.told), len(driver.scheduler._starting)
    wake_ups[1].set()
    driver.turn()
    told_next = list(driver.told)
    wake_ups[0].set()
    wake_ups[2].set()
    driver.turn()

    assert (told_first, queued) == ([0, 1], 3)
    assert told_next == [0, 1, 2]
    assert driver.told == [0, 1, 2, 3, 4]
    assert not driver.scheduler._starting


def test_calls_that_end_at_once_do_not_keep_others_in_the_queue(stack: ExitStack) -> None:
    driver = Driver(stack, most=1)
    driver.start(lambda: green_threads.sleep(0.01))
    driver.start(*[lambda number=number: driver.told.append(number) for number in range(3)])

    driver.run_until_told(0, 1, 2)
    assert not driver.scheduler._starting


def test_a_green_thread_starts_another_and_goes_on(stack: ExitStack) -> None:
    driver = Driver(stack, most=2)

    def start_another() -> None:
        driver.scheduler.start(lambda: green_threads.sleep(0.01))
        driver.told.append("went on")

    driver.start(*[start_another] * 3)

    driver.run_until_told("went on", "went on", "went on")
    driver.run_until(lambda: not driver.scheduler._starting and not driver.scheduler._running)


def test_an_idle_one_leaves_its_place_to_a_call_that_waits(stack: ExitStack) -> None:
    driver = Driver(stack, most=1)
    ours, _ = driver.pair()

    def wait_idly() -> None:
        deadline = time.monotonic() + LONG_SECONDS
        driver.told.append(driver.scheduler.wait_idly_for(ours.fileno(), READABLE, deadline))

    driver.start(wait_idly)
    driver.turn()
    driver.start(lambda: driver.told.append("next"))
    driver.turn()

    assert driver.told == [0, "next"]


def test_a_failing_one_is_logged_and_leaves_its_place(
    stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    driver = Driver(stack, most=1)

    def fail() -> None:
        green_threads.sleep(0)
        raise LookupError("not here")

    driver.start(fail, lambda: driver.told.append("next"))

    driver.run_until_told("next")
    [record] = caplog.records
    assert record.getMessage() == "A green thread failed"
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError


# --- State -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("separate")
def test_each_has_database_connections_of_its_own_and_a_later_one_gets_a_used_set(
    stack: ExitStack,
) -> None:
    driver = Driver(stack, most=2)

    def look() -> None:
        found = connections["default"]
        green_threads.sleep(0.01)
        assert connections["default"] is found
        driver.told.append(id(found))

    driver.start(look, look)
    driver.run_until(lambda: len(driver.told) == 2)
    driver.start(look)
    driver.run_until(lambda: len(driver.told) == 3)

    first, second, later = driver.told
    assert first != second
    assert later in {first, second}
    assert id(connections["default"]) not in driver.told


def test_context_variables_do_not_pass_to_the_next(driver: Driver) -> None:
    name = contextvars.ContextVar("name", default="nobody")

    def set_name() -> None:
        name.set("alice")
        green_threads.sleep(0)

    driver.start(set_name, lambda: driver.told.append(name.get()))
    driver.turn()
    driver.start(lambda: driver.told.append(name.get()))

    assert driver.told == ["nobody", "nobody"]


# --- A thread that does nothing else -----------------------------------------------------------


@pytest.fixture
def loop(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> GreenLoop:
    monkeypatch.setattr(connections, "_connections", connections._connections)
    return GreenLoop(most=3, executor=stack.enter_context(DatabaseThreads(2)))


def test_a_loop_ends_when_all_that_was_started_has_ended(loop: GreenLoop) -> None:
    told = []

    def tell_later() -> None:
        green_threads.sleep(0.02)
        told.append("later")

    def start_another() -> None:
        loop.start(tell_later)
        told.append(green_threads.in_thread(lambda: "from a thread"))

    loop.run(start_another)

    assert told == ["from a thread", "later"]


def test_a_loop_raises_what_its_first_call_raises(loop: GreenLoop) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop.run(fail)


def test_a_loop_makes_calls_of_other_threads_and_ignores_late_ones(loop: GreenLoop) -> None:
    bell, told = Bell(), []

    def wait() -> None:
        told.append(bell.wait(LONG_SECONDS))
        told.append(bell.wait(0.001))

    caller = threading.Timer(0.02, loop.call_soon, (bell.ring,))
    caller.start()
    loop.run(wait)
    caller.join()
    loop.call_soon(bell.ring)

    assert told == [True, False]


def test_a_bell_that_rang_before_the_wait_ends_it_once(loop: GreenLoop) -> None:
    bell, told = Bell(), []

    def wait() -> None:
        bell.ring()
        bell.ring()
        told.append(bell.wait(LONG_SECONDS))
        told.append(bell.wait(0.001))

    loop.run(wait)

    assert told == [True, False]


@pytest.mark.django_db(transaction=True)
def test_a_loop_closes_the_connections_of_its_green_threads(loop: GreenLoop) -> None:
    opened = []

    def connect() -> None:
        connections["default"].ensure_connection()
        opened.append(connections["default"])

    loop.run(connect)

    assert [each.connection for each in opened] == [None]
    assert connections["default"] not in opened


# --- Outside of green threads ------------------------------------------------------------------


def test_outside_of_a_green_thread_everything_blocks_as_usual() -> None:
    wake_up = WakeUp()
    threading.Timer(0.05, wake_up.set).start()
    began = time.monotonic()
    green_threads.sleep(0.05)
    green_threads.give_way()

    assert green_threads.current() is None
    assert time.monotonic() - began >= 0.05
    assert wake_up.wait()
    assert not WakeUp().wait(0.01)
    assert green_threads.in_thread(threading.get_ident) == threading.get_ident()


def test_only_a_green_thread_waits_for_files() -> None:
    with pytest.raises(RuntimeError, match="not in a green thread"):
        green_threads.wait_for(0, READABLE, time.monotonic())
