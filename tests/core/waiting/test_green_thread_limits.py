"""Green threads: their order, how many run at once, and what each keeps for itself."""

import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from django.db import connections

from core.waiting import (
    READABLE,
    WakeUp,
    green_threads,
)
from tests.core.waiting.green_driver import LONG_SECONDS, Driver, driver, separate, stack

__all__ = ["driver", "separate", "stack"]


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

    driver.start(give_way_until_told)

    # The file would be told as timed out if it had not been looked at meanwhile.
    driver.run_until_told(("waiter", READABLE))


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
