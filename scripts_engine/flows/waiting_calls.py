"""Bounds the calls of this process that wait for other runs to end, each with a thread."""

import time
from collections.abc import Iterator

from django.conf import settings

from core.built_once import built_once
from core.green_threads import sleep
from core.http.bulkhead import Bulkhead, return_pooled_connection

FIRST_PAUSE_SECONDS = 0.01
LONGEST_PAUSE_SECONDS = 0.1


@built_once
def waiting_calls() -> Bulkhead:
    """Places for ``CALLS_WAITING`` calls, at most half of them of one organisation.

    A full bulkhead refuses at once, so that duplicates and calls of a hook at its limit leave the
    other threads to calls that can run.
    """
    places = settings.CALLS_WAITING
    return Bulkhead("calls", limit=places, limit_per_key=max(1, places // 2))


def growing_pauses(seconds: float) -> Iterator[None]:
    """Yields after each pause, until that time has passed. Pauses hold no database connection."""
    end = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    while (left := end - time.monotonic()) > 0:
        return_pooled_connection()
        sleep(min(pause, left))
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        yield
