"""Whether this process is about to stop: it still answers, but should be sent nothing new."""

import threading

_draining = threading.Event()


def start_draining() -> None:
    """From now on /readyz says 503. Safe to call from a signal handler."""
    _draining.set()


def is_draining() -> bool:
    return _draining.is_set()
