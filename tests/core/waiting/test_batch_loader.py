"""Green threads that share a call, on a scheduler that the test's own thread drives."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from core.waiting import BatchLoader, green_threads
from tests.core.waiting.green_driver import Driver


@pytest.fixture
def driver() -> Iterator[Driver]:
    with ExitStack() as stack:
        yield Driver(stack)


class Squares:
    """Records the keys of each call. The key -1 makes a call fail."""

    def __init__(self, max_keys: int = 10) -> None:
        self.calls: list[list[int]] = []
        self.loader = BatchLoader(self._square, max_keys=max_keys)

    def _square(self, keys: list[int]) -> list[int]:
        self.calls.append(list(keys))
        if -1 in keys:
            raise ValueError("no squares today")
        return [key**2 for key in keys]

    def ask(self, driver: Driver, key: int) -> Callable[[], None]:
        def ask() -> None:
            try:
                driver.told.append((key, self.loader.load(key)))
            except ValueError as error:
                driver.told.append((key, str(error)))

        return ask


def test_those_that_ask_in_one_pass_share_a_call(driver: Driver) -> None:
    squares = Squares()
    driver.start(*(squares.ask(driver, key) for key in (3, 4, 5)))
    driver.run_until(lambda: len(driver.told) == 3)
    driver.start(squares.ask(driver, 6))
    driver.run_until(lambda: len(driver.told) == 4)

    assert squares.calls == [[3, 4, 5], [6]]
    assert sorted(driver.told) == [(3, 9), (4, 16), (5, 25), (6, 36)]


def test_a_shared_call_has_at_most_so_many_keys(driver: Driver) -> None:
    squares = Squares(max_keys=2)
    driver.start(*(squares.ask(driver, key) for key in range(5)))
    driver.run_until(lambda: len(driver.told) == 5)

    assert squares.calls == [[0, 1], [2, 3], [4]]
    assert sorted(driver.told) == [(key, key**2) for key in range(5)]


def test_when_a_shared_call_fails_each_key_is_loaded_alone(driver: Driver) -> None:
    squares = Squares()
    driver.start(*(squares.ask(driver, key) for key in (2, -1, 4)))
    driver.run_until(lambda: len(driver.told) == 3)

    assert squares.calls[0] == [2, -1, 4]
    assert sorted(squares.calls[1:]) == [[-1], [2], [4]]
    assert sorted(driver.told) == [(-1, "no squares today"), (2, 4), (4, 16)]


def test_a_key_that_is_alone_is_not_loaded_twice(driver: Driver) -> None:
    squares = Squares()
    driver.start(squares.ask(driver, -1))
    driver.run_until(lambda: len(driver.told) == 1)

    assert squares.calls == [[-1]]
    assert driver.told == [(-1, "no squares today")]


def test_others_may_ask_while_a_shared_call_waits(driver: Driver) -> None:
    calls: list[list[int]] = []

    def slowly(keys: list[int]) -> list[int]:
        calls.append(list(keys))
        green_threads.sleep(0.05 if keys == [1] else 0)
        return keys

    loader = BatchLoader(slowly, max_keys=10)

    def ask(key: int) -> Callable[[], None]:
        return lambda: driver.told.append(loader.load(key))

    driver.start(ask(1))
    driver.turn()
    driver.start(ask(2), ask(3))
    driver.run_until(lambda: len(driver.told) == 3)

    assert calls == [[1], [2, 3]]
    assert driver.told == [2, 3, 1]


def test_outside_of_green_threads_each_asks_alone() -> None:
    squares = Squares()

    assert [squares.loader.load(key) for key in (2, 3)] == [4, 9]
    assert squares.calls == [[2], [3]]
