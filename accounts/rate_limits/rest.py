import threading
import time


class Rest:
    """From asking what does not answer, so that its timeout is not paid by every request.

    While it lasts, one caller in so many seconds finds out whether it is over. Thread-safe.
    """

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asks_again_at: float | None = None

    def may_ask(self) -> bool:
        if self._asks_again_at is None:
            return True
        with self._lock:
            now = time.monotonic()
            if self._asks_again_at is not None and now < self._asks_again_at:
                return False
            self._asks_again_at = now + self._seconds
            return True

    def begin(self) -> bool:
        """After a failure. Whether it had not begun before."""
        with self._lock:
            is_new = self._asks_again_at is None
            self._asks_again_at = time.monotonic() + self._seconds
            return is_new

    def end(self) -> bool:
        """After an answer. Whether it had lasted until now."""
        if self._asks_again_at is None:
            return False
        with self._lock:
            was_on, self._asks_again_at = self._asks_again_at is not None, None
            return was_on
