"""Periodic maintenance, on one machine or on several concurrently: the duties of a round.

Apps register their duties at start.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from threading import Event

from django.db import close_old_connections

from core.database.unavailable import DatabaseUnavailable
from core.waiting import return_pooled_connection

Duty = Callable[[], int]

_every_minute: list[Duty] = []
_every_round: list[Duty] = []
logger = logging.getLogger(__name__)
MINUTE_SECONDS = 60
MINUTES_A_ROUND = 10


def register_duties(*duties: Duty, every_minute: bool = False) -> None:
    """Registers functions that return the number of rows concerned, in the order of a round.

    Several machines may call one at the same time. A minutely duty is part of each round, too.
    """
    (_every_minute if every_minute else _every_round).extend(duties)


def minutely_duties() -> tuple[Duty, ...]:
    return tuple(_every_minute)


def all_duties() -> tuple[Duty, ...]:
    return (*_every_minute, *_every_round)


def keep_up(stopping: Event) -> None:
    """Runs the minutely duties every minute and all of them every ten, until the event is set."""
    for minute in count():
        do_upkeep(minutely_duties() if minute % MINUTES_A_ROUND else all_duties())
        close_old_connections()
        return_pooled_connection()
        if stopping.wait(MINUTE_SECONDS):
            return


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The result of one round: rows by duty, and the duties that failed."""

    done: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def do_upkeep(duties: Iterable[Duty] | None = None) -> Upkeep:
    """Run every duty, or those given, even if one fails."""
    upkeep = Upkeep()
    for duty in all_duties() if duties is None else duties:
        name = duty.__name__
        try:
            count = duty()
        except DatabaseUnavailable as error:
            logger.error("Upkeep: %s failed: %s", name, " ".join(str(error).split()))  # noqa: TRY400
            upkeep.failed.append(name)
        except Exception:
            logger.exception("Upkeep: %s failed", name)
            upkeep.failed.append(name)
        else:
            upkeep.done[name] = count
            if count:
                logger.info("Upkeep: %s: %d", name, count)
    return upkeep
