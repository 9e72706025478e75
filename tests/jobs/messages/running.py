"""A runner of messages within a test that commits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.messages.runner import MessageRunner


@contextmanager
def running_messages() -> Iterator[MessageRunner]:
    """Stops it in the end, and waits for the messages in progress."""
    runner = MessageRunner()
    thread = threading.Thread(target=runner.run)
    thread.start()
    try:
        yield runner
    finally:
        runner.stop()
        thread.join()
