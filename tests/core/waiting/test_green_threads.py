"""Green threads on a scheduler that the test's own thread drives."""

import contextvars
import math
import os
import threading
import time
from collections.abc import Callable

import pytest
from django.db import connections

from core.waiting import (
    READABLE,
    WakeUp,
    green_threads,
)
from tests.core.waiting.green_driver import LONG_SECONDS, Driver, driver, separate, stack

__all__ = ["driver", "separate", "stack"]


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
