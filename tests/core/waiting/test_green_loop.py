"""A thread that only runs green threads, and waiting outside of green threads."""

import threading
import time
from contextlib import ExitStack

import pytest
from django.db import connections

from core.waiting import (
    READABLE,
    Bell,
    DatabaseThreads,
    GreenLoop,
    WakeUp,
    green_threads,
)
from tests.core.waiting.green_driver import LONG_SECONDS, stack

__all__ = ["stack"]


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
    green_threads.sleep(0.05)
    green_threads.give_way()

    assert green_threads.current() is None
    assert wake_up.wait()
    assert not WakeUp().wait(0.01)
    assert green_threads.in_thread(threading.get_ident) == threading.get_ident()


def test_only_a_green_thread_waits_for_files() -> None:
    with pytest.raises(RuntimeError, match="not in a green thread"):
        green_threads.wait_for(0, READABLE, time.monotonic())
