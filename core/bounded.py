"""Asking something that may never answer."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class NoAnswer(Exception):
    """There was none in time."""


class Attempt(Generic[Answer]):
    """One asking, in a thread of its own."""

    def __init__(self, ask: Callable[[], Answer], *, seconds: float) -> None:
        self._ask = ask
        self._deadline = time.monotonic() + seconds
        self._is_over = threading.Event()
        self._over_at = 0.0
        self._is_read = False
        self._answer: Answer
        self._error: Exception | None = None
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def is_over(self) -> bool:
        return self._is_over.is_set()

    def is_spent(self, keep_seconds: float) -> bool:
        """Whether its answer has been read, or came longer ago than it is kept."""
        is_stale = time.monotonic() - self._over_at >= keep_seconds
        return self.is_over and (self._is_read or is_stale)

    def answer(self) -> Answer:
        """Raises ``NoAnswer`` at the deadline, and whatever the asking raises."""
        if not self._is_over.wait(max(0.0, self._deadline - time.monotonic())):
            raise NoAnswer
        self._is_read = True
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except Exception as error:  # noqa: BLE001  (raised where it is waited for)
            self._error = error
        finally:
            self._over_at = time.monotonic()
            self._is_over.set()


class Bounded(Generic[Answer]):
    """Asks in a thread and waits no longer than it may.

    However often it is called, there is one thread at most: while an attempt hangs, nobody waits
    for it beyond its deadline. An answer that nobody waited for is kept for whoever asks next, but
    no longer than ``keep_seconds``.
    """

    def __init__(
        self, ask: Callable[[], Answer], *, seconds: float, keep_seconds: float = 0.0
    ) -> None:
        self._ask = ask
        self._seconds = seconds
        self._keep_seconds = keep_seconds
        self._lock = threading.Lock()
        self._attempt: Attempt[Answer] | None = None

    def start(self) -> "Attempt[Answer]":
        """Asks, without waiting for the answer yet."""
        with self._lock:
            if self._attempt is None or self._attempt.is_spent(self._keep_seconds):
                self._attempt = Attempt(self._ask, seconds=self._seconds)
            return self._attempt

    def __call__(self) -> Answer:
        """Raises ``NoAnswer``, and whatever the asking raises."""
        return self.start().answer()
