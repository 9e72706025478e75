"""What is left of a run's time, and transactions that wait no longer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

from django.db import connection, transaction


def remaining(ends_at: float) -> float:
    """Seconds until that instant of ``time.monotonic()``. Raises ``TimeoutError``."""
    seconds = ends_at - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


@contextmanager
def transaction_until(deadline: float) -> Iterator[None]:
    """A transaction. Raises ``TimeoutError`` when it is too late for one to begin."""
    lock_timeout_ms = ceil(remaining(deadline) * 1000)
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            # Until the end of the transaction.
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
