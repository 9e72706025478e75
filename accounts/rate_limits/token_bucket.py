"""Token buckets shared by all nodes, in Redis or the database, exact under concurrency.

A bucket of ``burst`` tokens gets one token each ``interval``. As in GCRA (ITU-T I.371), one number
describes it: when it is full again. Each token taken moves that time on by one interval, and a
token is there while the time is at most ``burst`` intervals away. Times are in µs since the epoch,
by the clock of Redis or PostgreSQL, so that the clocks of nodes do not matter.
"""

import time
from collections.abc import Sequence
from math import ceil
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone
from limits.errors import StorageError
from limits.strategies import FixedWindowRateLimiter

from accounts.models import TokenBucket
from accounts.rate_limits.database_storage import DatabaseStorage
from accounts.rate_limits.limiter import with_limiter
from core.database.batches import delete_in_batches
from core.errors import RateLimitedError
from core.metrics.catalogue import RATE_LIMITED

MINUTE = 60_000_000
# A bucket that is full later than this beyond what its tokens explain is from before the clock was
# set back, and is started again.
MAX_CLOCK_STEP = 60_000_000
MAX_KNOWN_EMPTY = 10_000

# ``excluded.full_at`` is the present and one interval, so the row's own time is compared with it.
_TAKE = """
    INSERT INTO {table} (key, full_at) VALUES (%s, {now} + %s)
    ON CONFLICT (key) DO UPDATE SET full_at = CASE
        WHEN {table}.full_at > excluded.full_at + %s THEN excluded.full_at
        WHEN {table}.full_at + %s > excluded.full_at THEN {table}.full_at + %s
        ELSE excluded.full_at END
    WHERE {table}.full_at <= excluded.full_at + %s OR {table}.full_at > excluded.full_at + %s
    RETURNING full_at
"""
_WAIT = "SELECT full_at - {now} FROM {table} WHERE key = %s"
_POSTGRESQL_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

_TAKE_IN_REDIS = """
local time = redis.call("time")
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local interval, burst, step = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full_at = tonumber(redis.call("get", KEYS[1]) or "0")
if full_at < now or full_at > now + burst * interval + step then full_at = now end
local wait = full_at + interval - now - burst * interval
if wait > 0 then return wait end
full_at = full_at + interval
redis.call("set", KEYS[1], string.format("%.0f", full_at),
    "px", math.ceil((full_at - now) / 1000))
return 0
"""

# Empty buckets that this process has met, with the time of the next token (``time.monotonic``):
# nothing brings that nearer, so a flood of refused calls asks for nothing.
_known_empty: dict[tuple[str, int, int], float] = {}


def take_token(action: str, identifier: str, *, per_minute: int, burst: int) -> None:
    """Takes a token of the bucket, or raises ``RateLimitedError`` and takes none.

    The error has the seconds until the next token, rounded up. ``action`` is the metric's label.
    """
    if not settings.IS_RATE_LIMITED:
        return
    bucket = (f"{action}/{identifier}", per_minute, burst)
    wait_seconds = _known_wait(bucket)
    if wait_seconds <= 0:
        interval = ceil(MINUTE / per_minute)
        wait_seconds = _take(bucket[0], interval, burst) / 1_000_000
        if wait_seconds <= 0:
            return
        _remember_empty(bucket, wait_seconds)
    RATE_LIMITED.labels(action).inc()
    raise RateLimitedError(max(1, ceil(wait_seconds)))


def forget_full_buckets() -> int:
    """Deletes buckets that are full: without a row, a bucket is full too."""
    # A minute later, because the clock of this node may be ahead of the database's.
    latest = int(timezone.now().timestamp() * 1_000_000) - MAX_CLOCK_STEP
    return delete_in_batches(TokenBucket.objects.filter(full_at__lte=latest))


def _known_wait(bucket: tuple[str, int, int]) -> float:
    return _known_empty.get(bucket, 0) - time.monotonic()


def _remember_empty(bucket: tuple[str, int, int], wait_seconds: float) -> None:
    if len(_known_empty) >= MAX_KNOWN_EMPTY:
        # A forgotten bucket costs one more statement.
        _known_empty.clear()
    _known_empty[bucket] = time.monotonic() + wait_seconds


def _take(key: str, interval: int, burst: int) -> int:
    """Returns 0 if a token was taken, and otherwise the µs until there is one."""

    def take(limiter: FixedWindowRateLimiter) -> int:
        storage: Any = limiter.storage
        if isinstance(storage, DatabaseStorage):
            return _take_in_database(key, interval, burst)
        return _take_in_redis(storage, key, interval, burst)

    return with_limiter(take)


def _take_in_redis(storage: Any, key: str, interval: int, burst: int) -> int:
    try:
        wait: int = storage.get_connection().eval(
            _TAKE_IN_REDIS, 1, storage.prefixed_key(key), interval, burst, MAX_CLOCK_STEP
        )
    except storage.base_exceptions as error:
        raise StorageError(error) from error
    return wait


def _take_in_database(key: str, interval: int, burst: int) -> int:
    # The last token was there if the bucket was full at most this long after ``excluded.full_at``.
    spare = (burst - 2) * interval
    implausible = spare + interval + MAX_CLOCK_STEP
    take = [interval, implausible, interval, interval, spare, implausible]
    with connection.cursor() as cursor:
        cursor.execute(*_statement(_TAKE, [key], take))
        if cursor.fetchone() is not None:
            return 0
        cursor.execute(*_statement(_WAIT, [], [key]))
        row = cursor.fetchone()
    # Without a row, it was deleted as full meanwhile.
    return 1 if row is None else max(1, row[0] + interval - burst * interval)


def _statement(
    template: str, before_now: Sequence[Any], after_now: Sequence[Any]
) -> tuple[str, list[Any]]:
    """The statement with the database's time; SQLite's is that of its only machine."""
    table = connection.ops.quote_name(TokenBucket._meta.db_table)
    if connection.vendor == "postgresql":
        return template.format(table=table, now=_POSTGRESQL_NOW), [*before_now, *after_now]
    now = int(timezone.now().timestamp() * 1_000_000)
    return template.format(table=table, now="%s"), [*before_now, now, *after_now]
