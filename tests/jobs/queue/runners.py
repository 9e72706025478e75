"""A runner in the process of the test."""

from collections.abc import Callable
from typing import Any

from jobs.models import QueueEntry
from jobs.queue.runner import Runner

COUNTS = "store.increment(params.get('run_id')) return 'done'"


def work_until(is_done: Callable[[], object], slots: int = 4, **options: Any) -> None:
    """Runs a runner in this thread until that is true."""

    def stop_when_done() -> None:
        if is_done():
            runner.stop()

    runner = Runner(slots, duties=((stop_when_done, 0.02),), **options)
    runner.run()


def is_empty() -> bool:
    return not QueueEntry.objects.exists()
