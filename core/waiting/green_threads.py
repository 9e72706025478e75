"""Green threads: requests that share the main thread of a web worker and give way where they wait.

Passing a request to a thread of the operating system and back costs as much as a small request,
and threads of one interpreter compete for it. A green thread (a greenlet) keeps the main thread
until it waits in a function of this module; then others go on. Outside of green threads, these
functions block as usual, so the same code serves both.

Two rules for code that may run in a green thread: it blocks nowhere else for longer than a few
milliseconds, and it holds no lock of ``threading`` while it waits.
"""

import logging
import select
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Generic, TypeVar

from django.db import connection
from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    from core.waiting.scheduler import Scheduler

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 0.1

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Key = TypeVar("Key")
Value = TypeVar("Value")


class GreenThread(greenlet):
    scheduler: "Scheduler"
    connections: SimpleNamespace
    """Its database connections, by alias."""
    is_parked = False


def current() -> GreenThread | None:
    """The green thread that runs this code, if one does."""
    running = getcurrent()
    return running if type(running) is GreenThread else None


def running() -> GreenThread:
    green = current()
    if green is None:
        raise RuntimeError("not in a green thread")
    return green


def sleep(seconds: float) -> None:
    green = current()
    if green is None:
        time.sleep(seconds)
    else:
        green.scheduler.park(time.monotonic() + seconds)


def growing_pauses(seconds: float) -> Iterator[None]:
    """Yields after each pause, until that time has passed. Pauses hold no database connection."""
    end = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while (left := end - time.monotonic()) > 0:
        return_pooled_connection()
        sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        yield


def give_way() -> None:
    """Continues after all green threads that can go on now. Returns at once outside of one."""
    green = current()
    if green is not None:
        green.scheduler.park_behind_others()


def in_thread(call: Callable[[], Result]) -> Result:
    """Returns the call's result; in a green thread, makes the call in a thread of the worker.

    That thread has database connections of its own, and the caller's context variables. The green
    thread returns its pooled connection: otherwise all connections could be held by green threads
    whose calls wait for one.
    """
    green = current()
    if green is None:
        return call()
    return_pooled_connection()
    return green.scheduler.in_thread(call)


def start_in_thread(call: Callable[[], None]) -> None:
    """Makes the call in a thread of the worker, and does not wait. The call must not raise.

    Only in a green thread.
    """
    running().scheduler.start_in_thread(call)


def wait_for(file: int, events: int, deadline: float) -> int:
    """Waits for READABLE or WRITABLE and returns what has happened, or 0 at the deadline.

    Only in a green thread.
    """
    return running().scheduler.wait_for(file, events, deadline)


def return_pooled_connection() -> None:
    """Return a pooled database connection before this thread waits, so running requests get it."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()


class WakeUp:
    """Wakes the thread that made it, once; cheaper than ``threading.Event``. ``set`` only once."""

    __slots__ = ("_green", "_is_parked", "_is_set", "_lock")

    def __init__(self) -> None:
        self._green = current()
        self._is_set = self._is_parked = False
        if self._green is None:
            self._lock = threading.Lock()
            self._lock.acquire()

    def wait(self, seconds: float | None = None) -> bool:
        """Returns whether it was set within the time."""
        if self._green is None:
            return self._lock.acquire(timeout=-1 if seconds is None else max(0, seconds))
        if not self._is_set:
            self._is_parked = True
            deadline = None if seconds is None else time.monotonic() + seconds
            self._green.scheduler.park(deadline)
            self._is_parked = False
        return self._is_set

    def set(self) -> None:
        """Called from any thread."""
        if self._green is None:
            self._lock.release()
        else:
            self._green.scheduler.call(self._set)

    def _set(self) -> None:
        self._is_set = True
        if self._is_parked and self._green is not None:
            self._green.scheduler.make_ready(self._green, 1)


class Bell:
    """Ends a wait of one green thread, or its next one; rings any number of times.

    Only for one thread and its green threads.
    """

    def __init__(self) -> None:
        self._has_rung = False
        self._waiter: GreenThread | None = None

    def ring(self) -> None:
        self._has_rung = True
        if self._waiter is not None:
            self._waiter.scheduler.make_ready(self._waiter, 1)

    def wait(self, seconds: float) -> bool:
        """Returns whether it rang since the last wait or within the time."""
        if not self._has_rung:
            self._waiter = running()
            self._waiter.scheduler.park(time.monotonic() + seconds)
            self._waiter = None
        has_rung, self._has_rung = self._has_rung, False
        return has_rung


class BatchLoader(Generic[Key, Value]):
    """Loads the keys of all green threads that ask in the same pass of their scheduler.

    If the shared call fails, each key is loaded alone, so that one key's failure is nobody else's.
    Outside of green threads, each key is loaded alone too.
    """

    def __init__(self, load: Callable[[list[Key]], list[Value]], *, max_keys: int) -> None:
        """``load`` returns a value for each key."""
        self._load = load
        self._max_keys = max_keys
        # Green threads of different threads cannot wake each other without a lock.
        self._of_thread = threading.local()

    def load(self, key: Key) -> Value:
        if current() is None:
            return self._load([key])[0]
        batch: _Batch[Key, Value] | None = getattr(self._of_thread, "batch", None)
        if batch is not None and len(batch.keys) < self._max_keys:
            place = batch.join(key)
        else:
            place = 0
            batch = self._of_thread.batch = _Batch(key)
            # Others join the batch meanwhile.
            give_way()
            if self._of_thread.batch is batch:
                self._of_thread.batch = None
            if len(batch.keys) == 1:
                return self._load([key])[0]
            batch.lead(self._load)
        if batch.values is None:
            return self._load([key])[0]
        return batch.values[place]


class _Batch(Generic[Key, Value]):
    """The keys of one call, which the first caller makes; ``values`` stay None if it fails."""

    def __init__(self, key: Key) -> None:
        self.keys = [key]
        self.values: list[Value] | None = None
        self._followers: list[WakeUp] = []

    def join(self, key: Key) -> int:
        """Returns the key's place once the call was made."""
        place = len(self.keys)
        self.keys.append(key)
        is_called = WakeUp()
        self._followers.append(is_called)
        is_called.wait()
        return place

    def lead(self, load: Callable[[list[Key]], list[Value]]) -> None:
        try:
            self.values = load(self.keys)
        except Exception as error:  # noqa: BLE001 (each key is loaded again)
            reason = " ".join(str(error).split())
            logger.warning("Loading %d keys alone, not together: %s", len(self.keys), reason)
        finally:
            for follower in self._followers:
                follower.set()
