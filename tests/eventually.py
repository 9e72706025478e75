import time
from collections.abc import Callable

SECONDS = 30


def eventually(condition: Callable[[], object], *, seconds: float = SECONDS) -> None:
    """Waits until the condition holds; fails when it does not within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come about"
        time.sleep(0.05)
