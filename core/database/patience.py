"""Waiting for what others have to do first."""

import time
from collections.abc import Callable

EVERY_SECONDS = 0.5

Say = Callable[[str], object]


class WaitedTooLong(Exception):
    """Its text says for what."""


def wait_until_nothing_is_missing(
    what_is_missing: Callable[[], str | None], *, seconds: float, say: Say
) -> None:
    """Asks again and again; says what it waits for, once for each answer.

    Raises WaitedTooLong.
    """
    deadline = time.monotonic() + seconds
    said = None
    while (missing := what_is_missing()) is not None:
        if time.monotonic() >= deadline:
            raise WaitedTooLong(f"Gave up after {seconds:g} seconds of waiting for {missing}")
        if missing != said:
            say(f"Waiting for {missing}")
            said = missing
        time.sleep(EVERY_SECONDS)
    if said is not None:
        say("Going on.")
