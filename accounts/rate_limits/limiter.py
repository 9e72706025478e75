"""Counting, and refusing when a window is full."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import Any, NamedTuple, NoReturn, TypeVar

import redis  # noqa: F401  (the library of limits imports it in the midst of a request otherwise)
from django.conf import settings
from limits import RateLimitItem
from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter

from accounts.rate_limits.database_storage import DatabaseStorage
from accounts.rate_limits.redis_storage import decrement_in_redis
from accounts.rate_limits.rest import Rest
from core.built_once import built_once
from core.errors import RateLimitedError
from core.metrics.catalogue import RATE_LIMITED

REDIS_TIMEOUT_SECONDS = 0.5
REDIS_REST_SECONDS = 10

logger = logging.getLogger(__name__)

# Counts that this process remembers as full.
MOST_REFUSED = 10_000

Result = TypeVar("Result")


class Count(NamedTuple):
    """A window, and what is counted in it for whom: the name of the action comes first."""

    window: RateLimitItem
    identifiers: tuple[str, ...]


# What refused a hit, in this process: asked again before the next one.
_refused: dict[Count, None] = {}


class CountFullError(RateLimitedError):
    """``count`` is the one that refuses."""

    def __init__(self, retry_after_seconds: int, count: Count) -> None:
        super().__init__(retry_after_seconds)
        self.count = count


class Claim(NamedTuple):
    """A place in each of the counts, taken by ``claimed_at`` (``time.monotonic``)."""

    counts: Sequence[Count]
    claimed_at: float = 0

    def give_back(self) -> None:
        """For what turned out not to count, or was not done.

        A window that began since then has nothing of it.
        """
        for count in self.counts:
            _counted(partial(_decrement, count=count, claimed_at=self.claimed_at))

    def without(self, number: int) -> "Claim":
        """All but the first so many."""
        return self._replace(counts=self.counts[number:])


def hit(windows: Sequence[RateLimitItem], *identifiers: str) -> None:
    """Counts in every window; raises ``RateLimitedError`` at the first that is full already.

    Identifiers say what is counted and for whom, the name of the action first.
    """
    if not settings.IS_RATE_LIMITED:
        return
    for window in windows:
        if not _hit(Count(window, identifiers)):
            RATE_LIMITED.inc(identifiers[0])
            raise RateLimitedError(_seconds_left(Count(window, identifiers)))


def claim(counts: Sequence[Count]) -> Claim:
    """Counts in each, in their order, before that which they bound is done.

    However many come at once, a window lets as many pass as it holds. Raises ``CountFullError``
    with the seconds until none is full, and then has counted nowhere: a try that is refused does
    not fill the windows before the one that refused it.
    """
    if not settings.IS_RATE_LIMITED:
        return Claim(())
    for place, count in enumerate(counts):
        if _is_known_full(count):
            _refuse(counts[place:])
    for place, count in enumerate(counts):
        if not _hit(count):
            Claim(counts[: place + 1], time.monotonic()).give_back()
            _refuse(counts[place:])
    return Claim(counts, time.monotonic())


def _refuse(counts: Sequence[Count]) -> NoReturn:
    """The first of them is full, and of the others some may be."""
    first, *others = counts
    RATE_LIMITED.inc(first.identifiers[0])
    full = [first, *(count for count in others if is_full(count))]
    raise CountFullError(max(map(_seconds_left, full)), first)


def refuse_if_full(count: Count) -> None:
    """Raises ``CountFullError`` where the next try would be refused. Counts nothing."""
    if settings.IS_RATE_LIMITED and is_full(count):
        RATE_LIMITED.inc(count.identifiers[0])
        raise CountFullError(_seconds_left(count), count)


def is_full(count: Count) -> bool:
    """Whether the next try would be refused. Counts nothing."""
    return not _counted(lambda limiter: limiter.test(count.window, *count.identifiers))


def full_until(count: Count) -> float | None:
    """The time, in seconds since the epoch, at which a full window ends; ``None``: it is open."""
    return time.time() + _seconds_left(count) if is_full(count) else None


def forget(count: Count) -> None:
    """Resets the count."""
    _counted(lambda limiter: limiter.clear(count.window, *count.identifiers))


def is_first(window: RateLimitItem, *identifiers: str) -> bool:
    """Whether this has not been asked before within the length of the window.

    For what is written down once a window however often it happens.
    """
    if not settings.IS_RATE_LIMITED:
        return True
    return _hit(Count(type(window)(1, window.multiples), ("first", *identifiers)))


def network_of(client_address: str) -> str:
    """What counts as one client: an IPv4 address, or the /64 that an IPv6 one is in."""
    if not client_address:
        return "unknown"
    address = ip_address(client_address)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address)


def build_limiters() -> None:
    """Builds what the threads of this process share, so that no request has to."""
    _database_limiter()
    if settings.REDIS_URL:
        _rest_from(settings.REDIS_URL)
        _redis_limiter(settings.REDIS_URL)


def _hit(count: Count) -> bool:
    if _is_known_full(count):
        return False
    if _counted(lambda limiter: limiter.hit(count.window, *count.identifiers)):
        return True
    _remember_full(count)
    return False


def _is_known_full(count: Count) -> bool:
    """Whether it refused before, and would again: one look, where another hit would be a write."""
    if count not in _refused:
        return False
    if is_full(count):
        return True
    _refused.pop(count, None)
    return False


def _remember_full(count: Count) -> None:
    if len(_refused) >= MOST_REFUSED:
        # Whoever is forgotten costs a write the next time.
        _refused.clear()
    _refused[count] = None


def _seconds_left(count: Count) -> int:
    ends_at = _counted(
        lambda limiter: limiter.get_window_stats(count.window, *count.identifiers).reset_time
    )
    return max(1, ceil(ends_at - time.time()))


def _decrement(limiter: FixedWindowRateLimiter, count: Count, claimed_at: float) -> None:
    storage: Any = limiter.storage
    key = count.window.key_for(*count.identifiers)
    # More than that is left of a window only if it began after the claim.
    most_left = count.window.get_expiry() - (time.monotonic() - claimed_at)
    if isinstance(storage, DatabaseStorage):
        storage.decrement(key, most_left)
    else:
        decrement_in_redis(storage, key, most_left)


def _counted(ask: Callable[[FixedWindowRateLimiter], Result]) -> Result:
    """Asks Redis where there is one; while it does not answer, the database counts instead."""
    rest = _rest_from(settings.REDIS_URL)
    if settings.REDIS_URL and rest.may_ask():
        try:
            answer = ask(_redis_limiter(settings.REDIS_URL))
        except StorageError as error:
            if rest.begin():
                logger.error(  # noqa: TRY400  (one line says it)
                    "Redis does not answer; rate limits are counted in the database: %s", error
                )
        else:
            if rest.end():
                logger.info("Redis answers again and counts rate limits")
            return answer
    return ask(_database_limiter())


@built_once
def _rest_from(url: str) -> Rest:
    return Rest(seconds=REDIS_REST_SECONDS)


@built_once
def _redis_limiter(url: str) -> FixedWindowRateLimiter:
    storage = storage_from_string(
        url,
        wrap_exceptions=True,
        socket_timeout=REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=REDIS_TIMEOUT_SECONDS,
    )
    return FixedWindowRateLimiter(storage)


@built_once
def _database_limiter() -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(DatabaseStorage())
