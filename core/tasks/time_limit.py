"""No task runs for ever, even if a server answers a byte at a time."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Again and again, should whatever is interrupted swallow the error.
_REPEAT_SECONDS = 5


class OutOfTimeError(TimeoutError):
    """A task took longer than it may."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises ``OutOfTimeError`` inside when the time is up.

    By SIGALRM, which reaches the main thread, where workers run their tasks; elsewhere without
    effect.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(signal_number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError(f"took longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, _REPEAT_SECONDS)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        # Once more: an alarm may have come just as it was switched off.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
