"""A run's deadline: the time left, and transactions that wait no longer than that."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

from django.db import connection, transaction

# For administrators, if the run ends before a call does.
SCRIPT_TIMEOUT_HINT = "the timeout of the run is set on the page of its script"


def remaining(ends_at: float) -> float:
    """Seconds until ``ends_at``, in ``time.monotonic()``. Raises ``TimeoutError`` once past."""
    seconds = ends_at - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


@contextmanager
def transaction_until(deadline: float) -> Iterator[None]:
    """A transaction that waits for locks until the deadline.

    Raises ``TimeoutError`` if the deadline has already passed.
    """
    lock_timeout_ms = ceil(remaining(deadline) * 1000)
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            # Applies until the end of the transaction.
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [str(lock_timeout_ms)])
            yield
        return
    usual_seconds = connection.lock_timeout_seconds  # type: ignore[attr-defined]
    connection.lock_timeout_seconds = min(lock_timeout_ms / 1000, usual_seconds)  # type: ignore[attr-defined]
    try:
        with transaction.atomic():
            yield
    finally:
        connection.lock_timeout_seconds = usual_seconds  # type: ignore[attr-defined]
