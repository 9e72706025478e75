"""Runs green threads: beside other work of a thread, or in a thread of their own."""

import contextlib
import contextvars
import heapq
import logging
import math
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import count
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

from django.db import close_old_connections, connections
from greenlet import getcurrent

from core.waiting.green_threads import GreenThread, Result, WakeUp, current, running

# Most timers belong to waits that have ended. Beyond this number they are removed.
_MAX_TIMERS = 1000
_MAX_SLEEP_SECONDS = 60.0
# What an eventfd(2) takes at once.
_ONE = (1).to_bytes(8, sys.byteorder)

logger = logging.getLogger(__name__)


class Scheduler:
    """Runs the green threads of one thread, which makes it and calls it; at most ``most`` at once.

    That thread waits until the scheduler is readable or ``seconds_until_due`` have passed, and then
    calls ``run_ready``.
    """

    def __init__(self, *, most: int, executor: Executor, wake_up: Callable[..., None]) -> None:
        """``wake_up(call)`` makes the scheduler's thread call ``call`` soon, from any thread."""
        self._most = most
        self._executor = executor
        self._wake_up = wake_up
        self._thread_id = threading.get_ident()
        self._hub = getcurrent()
        self._running = 0
        self._starting: deque[Callable[[], None]] = deque()
        self._unused_connections: list[SimpleNamespace] = []
        self._events = select.epoll()
        self._by_file: dict[int, GreenThread] = {}
        # Of these, those whose place a waiting call may take.
        self._idle: dict[int, GreenThread] = {}
        # [time, number, green thread or None if it no longer waits], the earliest first.
        self._timers: list[list[Any]] = []
        self._numbers = count()
        self._ready: deque[tuple[GreenThread, int]] = deque()
        self._behind_others: list[GreenThread] = []

    # --- For the thread that runs it -----------------------------------------------------------

    def fileno(self) -> int:
        return self._events.fileno()

    @property
    def is_busy(self) -> bool:
        """Whether a green thread has not ended yet."""
        return self._running > 0 or bool(self._starting)

    @property
    def has_queue(self) -> bool:
        """Whether calls wait until a green thread has ended."""
        return bool(self._starting)

    def start(self, call: Callable[[], None]) -> None:
        """Makes the call in a new green thread, now or when another has ended."""
        # A green thread that switched to the new one would never be resumed.
        if current() is None and not self._starting and self._running < self._most:
            self._start_now(call)
            return
        self._starting.append(call)
        if self._idle and not self._can_start():
            file, green = self._idle.popitem()
            self._by_file.pop(file, None)
            self.make_ready(green, 0)

    def _start_now(self, call: Callable[[], None]) -> None:
        green = GreenThread(self._run, self._hub)
        green.scheduler = self
        green.connections = (self._unused_connections or [SimpleNamespace()]).pop()
        self._running += 1
        green.switch(green, call)

    def seconds_until_due(self, most: float) -> float:
        if self._ready or self._behind_others or self._can_start():
            return 0.0
        if len(self._timers) > _MAX_TIMERS:
            self._timers = [timer for timer in self._timers if timer[2] is not None]
            heapq.heapify(self._timers)
        timers = self._timers
        while timers and timers[0][2] is None:
            heapq.heappop(timers)
        return max(0.0, min(most, timers[0][0] - time.monotonic())) if timers else most

    def read_events(self, _file: object = None) -> None:
        for file, events in self._events.poll(0):
            green = self._by_file.pop(file, None)
            if green is not None:
                self.make_ready(green, events)

    def run_ready(self) -> None:
        """Resumes those that can go on. Those that give way twice go on in the next call."""
        self._end_waits()
        self._run_all()
        behind, self._behind_others = self._behind_others, []
        self._ready.extend((green, 1) for green in behind)
        self._run_all()

    def _run_all(self) -> None:
        while True:
            while self._can_start():
                self._start_now(self._starting.popleft())
            if not self._ready:
                return
            green, outcome = self._ready.popleft()
            green.switch(outcome)

    def close(self) -> None:
        """Closes the connections of green threads that have ended."""
        self._events.close()
        for unused in self._unused_connections:
            for database in vars(unused).values():
                database.close()
        self._unused_connections = []

    # --- For green threads ---------------------------------------------------------------------

    def park(self, deadline: float | None) -> int:
        """Returns the outcome with which it is made ready, or 0 at the deadline."""
        green = running()
        green.is_parked = True
        if deadline is None or deadline == math.inf:
            return int(self._hub.switch())
        timer = [deadline, next(self._numbers), green]
        heapq.heappush(self._timers, timer)
        outcome = self._hub.switch()
        timer[2] = None
        return int(outcome)

    def park_behind_others(self) -> None:
        self._behind_others.append(running())
        self._hub.switch()

    def wait_for(self, file: int, events: int, deadline: float | None) -> int:
        """Waits for events of a file and returns them, or 0 at the deadline."""
        green = running()
        once = events | select.EPOLLONESHOT
        try:
            self._events.modify(file, once)
        except FileNotFoundError:
            self._events.register(file, once)
        self._by_file[file] = green
        seen = self.park(deadline)
        # An event may come later, when nobody waits for it. If the file was closed, its number
        # may have a later waiter.
        if not seen and self._by_file.get(file) is green:
            del self._by_file[file]
        return seen

    def wait_idly_for(self, file: int, events: int, deadline: float) -> int:
        """Like ``wait_for``; also returns 0 when a call waits for a green thread to end."""
        if self._starting:
            return 0
        self._idle[file] = running()
        try:
            return self.wait_for(file, events, deadline)
        finally:
            self._idle.pop(file, None)

    def in_thread(self, call: Callable[[], Result]) -> Result:
        is_done = WakeUp()
        future = self._executor.submit(contextvars.copy_context().run, _with_connections, call)
        future.add_done_callback(lambda _: is_done.set())
        is_done.wait()
        return future.result()

    def start_in_thread(self, call: Callable[[], None]) -> None:
        self._executor.submit(_with_connections, call)

    def call(self, call: Callable[[], None]) -> None:
        """Makes the call in the scheduler's thread."""
        if threading.get_ident() == self._thread_id:
            call()
        else:
            self._wake_up(call)

    def make_ready(self, green: GreenThread, outcome: int) -> None:
        """Ends the wait of a parked green thread; has no effect if it has ended already."""
        if green.is_parked:
            green.is_parked = False
            self._ready.append((green, outcome))

    def _run(self, green: GreenThread, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:
            # It would end the worker.
            logger.exception("A green thread failed")
        finally:
            self._running -= 1
            self._unused_connections.append(green.connections)

    def _can_start(self) -> bool:
        return bool(self._starting) and self._running < self._most

    def _end_waits(self) -> None:
        now = time.monotonic()
        timers = self._timers
        while timers and timers[0][0] <= now:
            green = heapq.heappop(timers)[2]
            if green is not None:
                self.make_ready(green, 0)


class GreenLoop:
    """Runs green threads in a thread that does nothing else, at most ``most`` at once."""

    def __init__(self, *, most: int, executor: Executor) -> None:
        self._most = most
        self._executor = executor
        self._asked: SimpleQueue[Callable[[], None]] = SimpleQueue()
        # A file object: unlike a number, it never stands for a file that was opened later.
        bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._bell = os.fdopen(bell, "r+b", buffering=0)
        self._scheduler: Scheduler

    def run(self, call: Callable[[], None]) -> None:
        """Makes the call in a green thread; returns when it has ended and all that it started.

        Raises what the call raises. Green threads have database connections of their own, which
        are closed at the end.
        """
        separate_connections()
        self._scheduler = Scheduler(
            most=self._most, executor=self._executor, wake_up=self.call_soon
        )
        failures: list[BaseException] = []

        def first() -> None:
            try:
                call()
            except Exception as error:  # noqa: BLE001 (raised below)
                failures.append(error)

        events = select.poll()
        events.register(self._scheduler, select.POLLIN)
        events.register(self._bell, select.POLLIN)
        try:
            self._scheduler.start(first)
            while self._scheduler.is_busy:
                events.poll(math.ceil(self._scheduler.seconds_until_due(_MAX_SLEEP_SECONDS) * 1000))
                self._make_calls()
                self._scheduler.read_events()
                self._scheduler.run_ready()
        finally:
            self._scheduler.close()
            self._bell.close()
        if failures:
            raise failures[0]

    def start(self, call: Callable[[], None]) -> None:
        """Makes the call in a new green thread; only from one of this loop."""
        self._scheduler.start(call)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Makes the call in the loop's thread. From any thread or signal handler."""
        self._asked.put(call)
        # The loop may have ended.
        with contextlib.suppress(ValueError):
            self._bell.write(_ONE)

    def _make_calls(self) -> None:
        self._bell.read(len(_ONE))
        while not self._asked.empty():
            self._asked.get()()


def _with_connections(call: Callable[[], Result]) -> Result:
    try:
        return call()
    finally:
        close_old_connections()


def separate_connections() -> None:
    """Gives each green thread database connections of its own, like other threads."""
    handler: Any = connections
    if type(handler._connections) is not _Connections:
        handler._connections = _Connections(handler._connections)


class _Connections:
    """Django's database connections by alias: those of the green thread, or of the thread."""

    def __init__(self, of_thread: Any) -> None:
        object.__setattr__(self, "_of_thread", of_thread)

    def __getattr__(self, alias: str) -> Any:
        return getattr(self._here(), alias)

    def __setattr__(self, alias: str, connection: Any) -> None:
        setattr(self._here(), alias, connection)

    def __delattr__(self, alias: str) -> None:
        delattr(self._here(), alias)

    def _here(self) -> Any:
        green = current()
        return object.__getattribute__(self, "_of_thread") if green is None else green.connections
