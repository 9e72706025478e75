"""What is left of a run's time."""

import time


def remaining(ends_at: float) -> float:
    """Seconds until that instant of ``time.monotonic()``. Raises ``TimeoutError``."""
    seconds = ends_at - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
