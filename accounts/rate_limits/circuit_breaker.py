import threading
import time


class CircuitBreaker:
    """Spares callers the timeout of a service that is down. Thread-safe.

    Closed: every caller may ask. Open, after a failure: none may. Half-open, once ``open_seconds``
    have passed: one caller may ask, and its success closes the circuit.
    """

    def __init__(self, *, open_seconds: float) -> None:
        self._open_seconds = open_seconds
        self._lock = threading.Lock()
        # ``None`` while the circuit is closed.
        self._half_open_at: float | None = None

    def allows_call(self) -> bool:
        if self._half_open_at is None:
            return True
        with self._lock:
            now = time.monotonic()
            if self._half_open_at is not None and now < self._half_open_at:
                return False
            # One caller at a time: the next may ask when this one has neither failed nor succeeded.
            self._half_open_at = now + self._open_seconds
            return True

    def record_failure(self) -> bool:
        """Opens the circuit. Returns whether it was closed."""
        with self._lock:
            was_closed = self._half_open_at is None
            self._half_open_at = time.monotonic() + self._open_seconds
            return was_closed

    def record_success(self) -> bool:
        """Closes the circuit. Returns whether it was open."""
        if self._half_open_at is None:
            return False
        with self._lock:
            was_open, self._half_open_at = self._half_open_at is not None, None
            return was_open
