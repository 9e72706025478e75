"""Runs functions concurrently, each with its own database connection."""

import threading
from collections.abc import Callable
from typing import TypeVar

from django.db import connections

from core.waiting import DatabaseThreads

Result = TypeVar("Result")


def at_once(count: int, action: Callable[[int], Result]) -> list[Result]:
    """Calls ``action(0)`` … ``action(count - 1)`` from as many threads, started together."""
    barrier = threading.Barrier(count)

    def run(number: int) -> Result:
        barrier.wait(timeout=60)
        try:
            return action(number)
        finally:
            # The others may be waiting for one of the pool's.
            connections.close_all()

    with DatabaseThreads(count) as executor:
        return list(executor.map(run, range(count)))
