"""Rate limits: counting actions in windows, and refusing them when a window is full."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import Any, NamedTuple, NoReturn, TypeVar

import redis  # noqa: F401  (or `limits` would import it during the first request)
from django.conf import settings
from limits import RateLimitItem
from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter

from accounts.rate_limits.circuit_breaker import CircuitBreaker
from accounts.rate_limits.database_storage import DatabaseStorage
from accounts.rate_limits.redis_storage import decrement_in_redis
from core.built_once import built_once
from core.errors import RateLimitedError
from core.green_threads import in_thread
from core.metrics.catalogue import RATE_LIMITED

REDIS_TIMEOUT_SECONDS = 0.5
# How long no request is sent to Redis after it did not answer.
REDIS_OPEN_SECONDS = 10
MAX_KNOWN_FULL = 10_000

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Count(NamedTuple):
    """A counter: its window and its identifiers, the first of which is the action's name."""

    window: RateLimitItem
    identifiers: tuple[str, ...]


# Counts that refused a hit of this process. They are read first, because a hit is a write.
_known_full: dict[Count, None] = {}


class CountFullError(RateLimitedError):
    """Raised instead of counting; ``count`` is the first that is full."""

    def __init__(self, retry_after_seconds: int, count: Count) -> None:
        super().__init__(retry_after_seconds)
        self.count = count


class Claim(NamedTuple):
    """One hit in each of the counts, made before ``claimed_at`` (``time.monotonic``)."""

    counts: Sequence[Count]
    claimed_at: float = 0

    def give_back(self) -> None:
        """Takes the hits back, except from windows that began after the claim."""
        for count in self.counts:
            with_limiter(partial(_decrement, count=count, claimed_at=self.claimed_at))

    def without(self, number: int) -> "Claim":
        """Returns the claim without its first ``number`` counts, whose hits then stay."""
        return self._replace(counts=self.counts[number:])


def hit(windows: Sequence[RateLimitItem], *identifiers: str) -> None:
    """Counts one action in every window; the identifiers are those of a ``Count``.

    Raises ``RateLimitedError`` at the first window that is full.
    """
    if not settings.IS_RATE_LIMITED:
        return
    for window in windows:
        if not _hit_unless_full(Count(window, identifiers)):
            RATE_LIMITED.labels(identifiers[0]).inc()
            raise RateLimitedError(_seconds_left(Count(window, identifiers)))


def claim(counts: Sequence[Count]) -> Claim:
    """Counts an action in each of the counts, in their order, before it is done.

    Exact under concurrency. If a count is full, raises ``CountFullError`` with the seconds until
    none is, and takes all hits back: a refused attempt does not fill the counts before that one.
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


def refuse_if_full(count: Count) -> None:
    """Raises ``CountFullError`` if the next hit would be refused. Counts nothing."""
    if settings.IS_RATE_LIMITED and is_full(count):
        RATE_LIMITED.labels(count.identifiers[0]).inc()
        raise CountFullError(_seconds_left(count), count)


def is_full(count: Count) -> bool:
    """Whether the next hit would be refused. Counts nothing."""
    if with_limiter(lambda limiter: limiter.test(count.window, *count.identifiers)):
        return False
    # A window that ends later than a new one could is from before the clock was set back, and the
    # next hit replaces it.
    return _seconds_left(count) <= 2 * count.window.get_expiry()


def full_until(count: Count) -> float | None:
    """Returns the end of the window in seconds since the epoch; ``None`` if it is not full."""
    return time.time() + _seconds_left(count) if is_full(count) else None


def forget(count: Count) -> None:
    """Sets the count back to zero."""
    with_limiter(lambda limiter: limiter.clear(count.window, *count.identifiers))


def is_first(window: RateLimitItem, *identifiers: str) -> bool:
    """Whether this is the first call with these identifiers in the window.

    For events that are recorded once per window, however often they happen.
    """
    if not settings.IS_RATE_LIMITED:
        return True
    return _hit_unless_full(Count(type(window)(1, window.multiples), ("first", *identifiers)))


def build_limiters() -> None:
    """Builds what the threads of this process share, before the first request needs it."""
    _database_limiter()
    if settings.REDIS_URL:
        _circuit_of(settings.REDIS_URL)
        _redis_limiter(settings.REDIS_URL)


def _hit_unless_full(count: Count) -> bool:
    return not _is_known_full(count) and _hit(count)


def _hit(count: Count) -> bool:
    """Whether there was room. A hit that is refused is counted too."""
    if with_limiter(lambda limiter: limiter.hit(count.window, *count.identifiers)):
        return True
    _remember_full(count)
    return False


def _is_known_full(count: Count) -> bool:
    """Whether the count refused a hit before and would refuse the next one."""
    if count not in _known_full:
        return False
    if is_full(count):
        return True
    _known_full.pop(count, None)
    return False


def _remember_full(count: Count) -> None:
    if len(_known_full) >= MAX_KNOWN_FULL:
        # A forgotten count costs one more write.
        _known_full.clear()
    _known_full[count] = None


def _refuse(counts: Sequence[Count]) -> NoReturn:
    """Raises ``CountFullError``: the first count is full, and others may be."""
    first, *others = counts
    RATE_LIMITED.labels(first.identifiers[0]).inc()
    full = [first, *(count for count in others if is_full(count))]
    raise CountFullError(max(map(_seconds_left, full)), first)


def _seconds_left(count: Count) -> int:
    ends_at = with_limiter(
        lambda limiter: limiter.get_window_stats(count.window, *count.identifiers).reset_time
    )
    return max(1, ceil(ends_at - time.time()))


def _decrement(limiter: FixedWindowRateLimiter, count: Count, claimed_at: float) -> None:
    storage: Any = limiter.storage
    key = count.window.key_for(*count.identifiers)
    # A window with more time left began after the claim.
    most_left = count.window.get_expiry() - (time.monotonic() - claimed_at)
    if isinstance(storage, DatabaseStorage):
        storage.decrement(key, most_left)
    else:
        decrement_in_redis(storage, key, most_left)


def with_limiter(call: Callable[[FixedWindowRateLimiter], Result]) -> Result:
    """Returns the call's result for the limiter in Redis, or for the one in the database.

    The database is used if Redis is not configured, or does not answer.
    """
    circuit = _circuit_of(settings.REDIS_URL)
    if settings.REDIS_URL and circuit.allows_call():
        try:
            answer = in_thread(partial(call, _redis_limiter(settings.REDIS_URL)))
        except StorageError as error:
            if circuit.record_failure():
                logger.error(  # noqa: TRY400  (the traceback adds nothing)
                    "Redis does not answer; rate limits are counted in the database: %s", error
                )
        else:
            if circuit.record_success():
                logger.info("Redis answers again and counts rate limits")
            return answer
    return call(_database_limiter())


@built_once
def _circuit_of(url: str) -> CircuitBreaker:
    return CircuitBreaker(open_seconds=REDIS_OPEN_SECONDS)


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
