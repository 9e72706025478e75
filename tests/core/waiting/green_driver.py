"""Runs green threads in the thread of a test."""

import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any

import pytest
from django.db import connections

from core.waiting import READABLE, DatabaseThreads, green_threads, scheduler
from core.waiting.scheduler import Scheduler

LONG_SECONDS = 30.0


class Driver:
    """The thread that runs a scheduler, as a web worker's main thread does.

    ``told`` collects what the green threads of a test report, in order.
    """

    def __init__(self, stack: ExitStack, most: int = 10) -> None:
        self.told: list[Any] = []
        self.executor = stack.enter_context(DatabaseThreads(4))
        self._stack = stack
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._woken, self._wakes = os.pipe()
        stack.callback(os.close, self._woken)
        stack.callback(os.close, self._wakes)
        self.scheduler = Scheduler(most=most, executor=self.executor, wake_up=self._wake_up)

    def start(self, *calls: Callable[[], None]) -> None:
        for call in calls:
            self.scheduler.start(call)

    def turn(self, most_seconds: float = 0.0) -> None:
        """One turn of the main loop."""
        seconds = self.scheduler.seconds_until_due(most_seconds)
        ready, _, _ = select.select([self.scheduler, self._woken], [], [], seconds)
        if self._woken in ready:
            os.read(self._woken, 1)
            self._calls.get()()
        self.scheduler.read_events()
        self.scheduler.run_ready()

    def run_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + LONG_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "this did not come about"
            self.turn(0.05)

    def run_until_told(self, *told: object) -> None:
        self.run_until(lambda: len(self.told) >= len(told))
        assert self.told == list(told)

    def pair(self) -> tuple[socket.socket, socket.socket]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        return self._stack.enter_context(ours), self._stack.enter_context(theirs)

    def waits_for(self, file: socket.socket, name: str, seconds: float = LONG_SECONDS) -> None:
        """Starts a green thread that tells what it has waited for."""

        def wait() -> None:
            deadline = time.monotonic() + seconds
            self.told.append((name, green_threads.wait_for(file.fileno(), READABLE, deadline)))

        self.start(wait)

    def _wake_up(self, call: Callable[[], None]) -> None:
        self._calls.put(call)
        os.write(self._wakes, b"\0")


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
    scheduler.separate_connections()
