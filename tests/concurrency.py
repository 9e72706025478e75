"""Runs functions concurrently, each with its own database connection."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

Result = TypeVar("Result")


def at_once(count: int, action: Callable[[int], Result]) -> list[Result]:
    """Calls ``action(0)`` … ``action(count - 1)`` from as many threads, started together."""
    barrier = threading.Barrier(count)

    def run(number: int) -> Result:
        barrier.wait(timeout=60)
        try:
            return action(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as executor:
        return list(executor.map(run, range(count)))
