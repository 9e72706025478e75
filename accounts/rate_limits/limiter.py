"""Rate limits: counting actions, and refusing them when a limit is reached."""

import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import NamedTuple, NoReturn

from django.conf import settings
from django.utils import timezone

from accounts.rate_limits import counters
from accounts.rate_limits.counters import Bucket, Limit, Window
from core.caches import BoundedCache
from core.errors import RateLimitedError
from core.metrics.instruments import RATE_LIMITED


class Count(NamedTuple):
    """A counter: its window and its identifiers, the first of which is the action's name."""

    window: Window
    identifiers: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.window.key(self.identifiers)


# Counters that refused a hit of this process, until they have room (``time.monotonic``). Windows
# are read first, because hits may be given back and a hit is a write; buckets need no statement.
_known_full: BoundedCache[tuple[str, Limit], float] = BoundedCache(10_000)


class CountFullError(RateLimitedError):
    """Raised instead of counting; ``count`` is the first that is full."""

    def __init__(self, retry_after_seconds: int, count: Count) -> None:
        super().__init__(retry_after_seconds)
        self.count = count


class Claim(NamedTuple):
    """One hit in each of the windows, made before ``claimed_at`` (``time.monotonic``)."""

    counts: Sequence[Count]
    claimed_at: float = 0

    def give_back(self) -> None:
        """Takes the hits back, except from windows that began after the claim."""
        for count in self.counts:
            age = int((time.monotonic() - self.claimed_at) * counters.SECOND)
            # A window with more time left began after the claim.
            counters.give_back(count.key, count.window.seconds * counters.SECOND - age)

    def without(self, number: int) -> "Claim":
        """Returns the claim without its first ``number`` counts, whose hits then stay."""
        return self._replace(counts=self.counts[number:])


def hit(limits: Iterable[Limit], *identifiers: str) -> None:
    """Counts one action in every limit; the identifiers are those of a ``Count``.

    Raises ``RateLimitedError`` at the first limit that is reached.
    """
    if not settings.IS_RATE_LIMITED:
        return
    for limit in limits:
        if wait := _hit(limit, identifiers):
            RATE_LIMITED.labels(identifiers[0]).inc()
            raise RateLimitedError(_whole(wait))


def claim(counts: Sequence[Count]) -> Claim:
    """Counts an action in each of the windows, in their order, before it is done.

    Exact under concurrency. If one is full, raises ``CountFullError`` with the seconds until none
    is, and takes all hits back: a refused attempt does not fill the windows before that one.
    """
    if not settings.IS_RATE_LIMITED:
        return Claim(())
    for place, count in enumerate(counts):
        if wait := _known_wait(count.key, count.window):
            _refuse(wait, counts[place:])
    for place, count in enumerate(counts):
        if wait := _take(count.key, count.window):
            Claim(counts[:place], time.monotonic()).give_back()
            _refuse(wait, counts[place:])
    return Claim(counts, time.monotonic())


def refuse_if_full(count: Count) -> None:
    """Raises ``CountFullError`` if the next hit would be refused. Counts nothing."""
    if settings.IS_RATE_LIMITED and (wait := _read_wait(count)):
        _refuse(wait, [count])


def is_full(count: Count) -> bool:
    """Whether the next hit would be refused. Counts nothing."""
    return _read_wait(count) > 0


def full_until(count: Count) -> datetime | None:
    """When the next hit will be counted; ``None`` if it would be now."""
    wait = _read_wait(count)
    return timezone.now() + timedelta(seconds=wait) if wait else None


def forget(count: Count) -> None:
    """Sets the window back to zero."""
    counters.forget(count.key)


def is_first(window: Window, *identifiers: str) -> bool:
    """Whether this is the first call with these identifiers in the window.

    For events that are recorded once per window, however often they happen.
    """
    if not settings.IS_RATE_LIMITED:
        return True
    return not _hit(Window(1, window.seconds), ("first", *identifiers))


def _hit(limit: Limit, identifiers: tuple[str, ...]) -> float:
    key = limit.key(identifiers)
    return _known_wait(key, limit) or _take(key, limit)


def _take(key: str, limit: Limit) -> float:
    """Counts a hit and returns 0, or only returns the seconds until there is room."""
    rule = limit.rule
    if counters.take(key, rule):
        return 0
    # Room that has come meanwhile is for the next hit.
    wait = max(1, counters.wait(key, rule)) / counters.SECOND
    has_room_at = time.monotonic() + wait
    _known_full.put((key, limit), has_room_at, until=has_room_at)
    return wait


def _known_wait(key: str, limit: Limit) -> float:
    """The seconds until a counter that refused a hit before has room; 0 if it has or did not."""
    has_room_at = _known_full.get((key, limit))
    if has_room_at is None:
        return 0
    if isinstance(limit, Bucket):
        return max(0, has_room_at - time.monotonic())
    wait = counters.wait(key, limit.rule) / counters.SECOND
    if not wait:
        _known_full.forget((key, limit))
    return wait


def _read_wait(count: Count) -> float:
    return counters.wait(count.key, count.window.rule) / counters.SECOND


def _refuse(wait: float, counts: Sequence[Count]) -> NoReturn:
    """Raises ``CountFullError``: the first count is full, and others may be."""
    first, *others = counts
    RATE_LIMITED.labels(first.identifiers[0]).inc()
    raise CountFullError(_whole(max([wait, *map(_read_wait, {*others} - {first})])), first)


def _whole(seconds: float) -> int:
    return max(1, ceil(seconds))
