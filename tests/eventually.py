import time
from collections.abc import Callable

SECONDS = 30


def eventually(condition: Callable[[], object]) -> None:
    """Waits until the condition holds; fails when it does not within ``SECONDS``."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "this did not come about"
        time.sleep(0.05)
