"""Threads of the system: those that use the database, and calls with a timeout."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Answer = TypeVar("Answer")


class DatabaseThreads(ThreadPoolExecutor):
    """Closes the database connections of its threads when it shuts down and waits for them.

    Otherwise they would stay open until the garbage collector finds them, and a pool of connections
    would never get its own back.
    """

    def __init__(self, most: int, name: str = "") -> None:
        self._connections: list[BaseDatabaseWrapper] = []
        super().__init__(most, thread_name_prefix=name, initializer=self._note_connections)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait, cancel_futures=cancel_futures)
        while wait and self._connections:
            database = self._connections.pop()
            # Its own thread, which alone may close it otherwise, has ended.
            database.inc_thread_sharing()
            database.close()

    def _note_connections(self) -> None:
        self._connections += connections.all()


class NoAnswer(Exception):
    """The call did not return in time."""


class NoThread(NoAnswer):
    """The call was not made, because the system has no thread left for it."""


class Attempt(Generic[Answer]):
    """One call, in a thread of its own."""

    def __init__(self, ask: Callable[[], Answer], *, seconds: float) -> None:
        self._ask = ask
        self._deadline = time.monotonic() + seconds
        self._is_over = threading.Event()
        self._over_at = 0.0
        self._is_read = False
        self._answer: Answer
        self._error: Exception | None = None
        try:
            threading.Thread(target=self._run, daemon=True).start()
        except RuntimeError as error:
            self._error = NoThread(str(error))
            self._end()

    @property
    def is_over(self) -> bool:
        return self._is_over.is_set()

    def is_spent(self, keep_seconds: float) -> bool:
        """Whether the answer has been read or is older than ``keep_seconds``."""
        is_stale = time.monotonic() - self._over_at >= keep_seconds
        return self.is_over and (self._is_read or is_stale)

    def answer(self) -> Answer:
        """Wait for the answer.

        Raises ``NoAnswer`` at the deadline, ``NoThread``, or the call's own exception.
        """
        if not self._is_over.wait(max(0.0, self._deadline - time.monotonic())):
            raise NoAnswer
        self._is_read = True
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except Exception as error:  # noqa: BLE001  (raised by answer())
            self._error = error
        finally:
            self._end()

    def _end(self) -> None:
        self._over_at = time.monotonic()
        self._is_over.set()


class Bounded(Generic[Answer]):
    """Calls a function in a thread and waits for at most ``seconds``.

    All callers share one attempt, so there is at most one thread. While an attempt hangs, nobody
    waits for it beyond its deadline. An answer that comes later is kept for the next caller, for
    up to ``keep_seconds``.
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
        """Start an attempt, or join the running one, without waiting."""
        with self._lock:
            if self._attempt is None or self._attempt.is_spent(self._keep_seconds):
                self._attempt = Attempt(self._ask, seconds=self._seconds)
            return self._attempt

    def __call__(self) -> Answer:
        """Return the answer. Raises ``NoAnswer``, ``NoThread`` or the call's own exception."""
        return self.start().answer()
