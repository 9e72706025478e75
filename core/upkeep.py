"""Periodic maintenance: the duties of a round, which apps register at start."""

from collections.abc import Callable

Duty = Callable[[], int]

_every_minute: list[Duty] = []
_every_round: list[Duty] = []


def register_duties(*duties: Duty, every_minute: bool = False) -> None:
    """Registers functions that return the number of rows concerned, in the order of a round.

    Several machines may call one at the same time. A minutely duty is part of each round, too.
    """
    (_every_minute if every_minute else _every_round).extend(duties)


def minutely_duties() -> tuple[Duty, ...]:
    return tuple(_every_minute)


def all_duties() -> tuple[Duty, ...]:
    return (*_every_minute, *_every_round)
