"""Counting, and refusing when a window is full."""

import logging
import time
from collections.abc import Callable, Sequence
from functools import cache
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import TypeVar

from django.conf import settings
from limits import RateLimitItem
from limits.errors import StorageError
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter

from accounts.errors import RateLimitedError
from accounts.rate_limits.database_storage import DatabaseStorage
from accounts.rate_limits.rest import Rest
from config.metrics.catalogue import RATE_LIMITED

REDIS_TIMEOUT_SECONDS = 0.5
REDIS_REST_SECONDS = 10

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


def hit(windows: Sequence[RateLimitItem], *identifiers: str) -> None:
    """Counts in every window; raises ``RateLimitedError`` at the first that is full already.

    Identifiers say what is counted and for whom, the name of the action first.
    """
    if not settings.IS_RATE_LIMITED:
        return
    for window in windows:
        if not _hit(window, *identifiers):
            RATE_LIMITED.inc(identifiers[0])
            raise RateLimitedError(_seconds_left(window, *identifiers))


def network_of(client_address: str) -> str:
    """What counts as one client: an IPv4 address, or the /64 that an IPv6 one is in."""
    if not client_address:
        return "unknown"
    address = ip_address(client_address)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address)


def _hit(window: RateLimitItem, *identifiers: str) -> bool:
    return _counted(lambda limiter: limiter.hit(window, *identifiers))


def _seconds_left(window: RateLimitItem, *identifiers: str) -> int:
    ends_at = _counted(lambda limiter: limiter.get_window_stats(window, *identifiers).reset_time)
    return max(1, ceil(ends_at - time.time()))


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


@cache
def _rest_from(url: str) -> Rest:
    return Rest(seconds=REDIS_REST_SECONDS)


@cache
def _redis_limiter(url: str) -> FixedWindowRateLimiter:
    storage = storage_from_string(
        url,
        wrap_exceptions=True,
        socket_timeout=REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=REDIS_TIMEOUT_SECONDS,
    )
    return FixedWindowRateLimiter(storage)


@cache
def _database_limiter() -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(DatabaseStorage())
