"""How a run waits: for its child, for a slot, for calls that take long.

A server that runs more than threads can wait in its own way; by default, a run blocks its thread.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class WakeUp(Protocol):
    """Wakes the thread that made it, once."""

    def wait(self, seconds: float) -> bool:
        """Return whether it was set within the time."""

    def set(self) -> None:
        """Called from any thread, at most once."""


class Waiting:
    """Blocks the thread."""

    def until_readable(self, channel: int, events: select.poll, deadline: float) -> bool:
        """Wait for a frame or the end of the child; False at the deadline of `time.monotonic`.

        `events` polls the channel and the process. A process that has ended has closed its end of
        the channel.
        """
        return _has_event_by(deadline, events)

    def until_writable(self, channel: int, events: select.poll, deadline: float) -> bool:
        """Wait until the channel takes bytes or the child has ended; False at the deadline."""
        return _has_event_by(deadline, events)

    def wake_up(self) -> WakeUp:
        return _Lock()

    def in_thread(self, call: Callable[[], Result]) -> Result:
        """Make a call that may block for long, and return its result."""
        return call()


def _has_event_by(deadline: float, events: select.poll) -> bool:
    remaining = deadline - time.monotonic()
    # Rounded up, or the caller would be busy for the last part of a millisecond.
    return remaining > 0 and bool(events.poll(int(remaining * 1000) + 1))


class _Lock:
    """A threading.Event would create three locks."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self, seconds: float) -> bool:
        return self._lock.acquire(timeout=seconds)

    def set(self) -> None:
        self._lock.release()
