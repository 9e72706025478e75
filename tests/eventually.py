import time
from collections.abc import Callable

# Only a failure takes so long: a machine that is busy with something else is slow, not wrong.
SECONDS = 120


def eventually(condition: Callable[[], object], *, seconds: float = SECONDS) -> None:
    """Waits until the condition holds; fails when it does not within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come about"
        time.sleep(0.05)
