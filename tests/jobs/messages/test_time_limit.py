import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from jobs.messages import attempts
from jobs.messages.attempts import OutOfTimeError, TimeLimit


@contextmanager
def enforcing(limit: TimeLimit) -> Iterator[None]:
    """Another thread looks at the limit again and again."""
    ended = threading.Event()

    def enforce() -> None:
        while not ended.wait(0.001):
            limit.enforce()

    thread = threading.Thread(target=enforce)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def wait_in_small_steps(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


def in_a_thread(block: Callable[[], None]) -> None:
    """Runs the block in a thread of its own, like a message.

    Not in the main thread: in CPython 3.11, each thread that it could not start, which other tests
    provoke, leaves a state under its id that would get the interruption.
    """
    with ThreadPoolExecutor(1) as executor:
        executor.submit(block).result()


def test_code_that_takes_too_long_is_interrupted(settings: Any) -> None:
    settings.TASK_TIMEOUT_SECONDS = 0.05
    limit = TimeLimit()

    def take_too_long() -> None:
        with limit:
            wait_in_small_steps(60)

    with enforcing(limit), pytest.raises(OutOfTimeError, match="took longer than"):
        in_a_thread(take_too_long)


def test_code_that_ends_in_time_is_not_interrupted_later(settings: Any) -> None:
    settings.TASK_TIMEOUT_SECONDS = 0.05
    limit = TimeLimit()

    def end_in_time() -> None:
        with limit:
            pass
        wait_in_small_steps(0.2)

    with enforcing(limit):
        in_a_thread(end_in_time)


def test_the_interruption_repeats_in_case_the_error_is_swallowed(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TASK_TIMEOUT_SECONDS = 0.01
    monkeypatch.setattr(attempts, "REPEAT_SECONDS", 0.01)
    limit = TimeLimit()

    def swallow_and_go_on() -> None:
        with limit:
            with suppress(OutOfTimeError):
                wait_in_small_steps(60)
            wait_in_small_steps(60)

    with enforcing(limit), pytest.raises(OutOfTimeError):
        in_a_thread(swallow_and_go_on)


def test_a_block_that_ends_as_its_time_is_up_leaves_no_interruption_behind(settings: Any) -> None:
    settings.TASK_TIMEOUT_SECONDS = 0
    limit = TimeLimit()

    def end_again_and_again() -> None:
        for _ in range(200):
            with suppress(OutOfTimeError), limit:
                pass
            limit.end()
            wait_in_small_steps(0.001)

    with enforcing(limit):
        in_a_thread(end_again_and_again)


@pytest.mark.parametrize("timeout_seconds", [0, 60])
def test_an_interruption_is_never_withdrawn(
    settings: Any, monkeypatch: pytest.MonkeyPatch, timeout_seconds: int
) -> None:
    """CPython would take the slow path of its evaluation loop in all threads from then on."""
    settings.TASK_TIMEOUT_SECONDS = timeout_seconds
    interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raised: list[object] = []

    def watched(thread_id: Any, error: Any) -> int:
        raised.append(error)
        return int(interrupt(thread_id, error))

    monkeypatch.setattr(ctypes.pythonapi, "PyThreadState_SetAsyncExc", watched)
    limit = TimeLimit()

    def be_interrupted() -> None:
        for _ in range(20):
            with suppress(OutOfTimeError), limit:
                wait_in_small_steps(0.01)
            limit.end()

    with enforcing(limit):
        in_a_thread(be_interrupted)

    assert None not in raised
    assert bool(raised) == (timeout_seconds == 0)
