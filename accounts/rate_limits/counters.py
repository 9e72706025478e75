"""Counters of rate limits in the database, exact under concurrency on any number of nodes.

A counter is a row with its hits and the time when it ends. Times are in µs since the epoch, by
PostgreSQL's clock, so that the clocks of nodes do not matter; SQLite has only one machine.
"""

from functools import cache
from typing import Any, NamedTuple

from django.db import connection
from django.utils import timezone

from accounts.models import RateCounter
from core.database.batches import delete_in_batches

SECOND = 1_000_000
# A bucket that ends later than this beyond what its tokens explain is from before the clock was
# set back.
MAX_CLOCK_STEP = 60 * SECOND
_POSTGRESQL_NOW = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class CounterRule(NamedTuple):
    """How hits change a counter, and when they are refused; times in µs."""

    adds_hits: int
    most_hits: int
    first_time: int
    """The time left after the first hit."""
    adds_time: int
    """What each further hit adds to the time left."""
    most_time: int
    """The time left with which a hit is still counted."""
    latest: int
    """A counter with more time left is from before the clock was set back, and starts again."""


class Window(NamedTuple):
    """At most ``amount`` (at least 1) hits in ``seconds`` from the first hit on."""

    amount: int
    seconds: int

    def key(self, identifiers: tuple[str, ...]) -> str:
        return "/".join((*identifiers, str(self.amount), str(self.seconds)))

    @property
    def rule(self) -> CounterRule:
        length = self.seconds * SECOND
        # Twice the length, because threads overtake each other.
        return CounterRule(1, self.amount, length, 0, 2 * length, 2 * length)


class Bucket(NamedTuple):
    """``burst`` tokens; one comes back each interval.

    As in GCRA (ITU-T I.371), one number describes it: when it is full again. Each token taken moves
    that time on by one interval, and a token is there while it is at most ``burst`` intervals away.
    """

    per_minute: int
    burst: int

    def key(self, identifiers: tuple[str, ...]) -> str:
        """Without the numbers: what was taken counts when they change, too."""
        return "/".join(identifiers)

    @property
    def rule(self) -> CounterRule:
        interval = -(-60 * SECOND // self.per_minute)
        most_time = (self.burst - 1) * interval
        return CounterRule(
            0, 1, interval, interval, most_time, most_time + interval + MAX_CLOCK_STEP
        )


Limit = Window | Bucket

# One statement, so that concurrent hits are counted one after the other.
_TAKE = """
    INSERT INTO {table} (key, hits, ends_at)
    VALUES (%(key)s, %(adds_hits)s, {now} + %(first_time)s)
    ON CONFLICT (key) DO UPDATE SET
        hits = CASE WHEN {is_over} THEN excluded.hits ELSE {table}.hits + excluded.hits END,
        ends_at = CASE WHEN {is_over}
            THEN excluded.ends_at ELSE {table}.ends_at + %(adds_time)s END
    WHERE {is_over} OR {table}.hits < %(most_hits)s AND {left} <= %(most_time)s
    RETURNING key
"""
# ``excluded.ends_at`` is the present and ``first_time``.
_LEFT = "({table}.ends_at - excluded.ends_at + %(first_time)s)"
_IS_OVER = "{left} NOT BETWEEN 1 AND %(latest)s"
_READ = "SELECT hits, ends_at - {now} FROM {table} WHERE key = %(key)s"
_GIVE_BACK = """
    UPDATE {table} SET hits = hits - 1
    WHERE key = %(key)s AND hits > 0 AND ends_at - {now} BETWEEN 1 AND %(most_left)s
    RETURNING key
"""


def take(key: str, rule: CounterRule) -> bool:
    """Counts a hit. If there is no room, changes nothing and returns false."""
    return _execute(_TAKE, key=key, **rule._asdict()) is not None


def wait(key: str, rule: CounterRule) -> int:
    """The µs until there is room for a hit; 0 if there is."""
    hits, left = _execute(_READ, key=key) or (0, 0)
    if not 0 < left <= rule.latest:
        return 0
    return left if hits >= rule.most_hits else max(0, left - rule.most_time)


def give_back(key: str, most_left: int) -> None:
    """Takes one hit back, unless more than ``most_left`` µs are left of the window."""
    _execute(_GIVE_BACK, key=key, most_left=most_left)


def forget(key: str) -> None:
    RateCounter.objects.filter(key=key).delete()


def forget_ended_counters() -> int:
    """Deletes counters that have ended, which mean the same as none."""
    [now] = _execute("SELECT {now}")
    return delete_in_batches(RateCounter.objects.filter(ends_at__lte=now))


def _execute(template: str, **values: Any) -> Any:
    """Returns the first row, if there is one."""
    # For SQLite; PostgreSQL takes its own time.
    values["now"] = int(timezone.now().timestamp() * SECOND)
    with connection.cursor() as cursor:
        cursor.execute(_statement(template, connection.vendor), values)
        return cursor.fetchone()


@cache
def _statement(template: str, vendor: str) -> str:
    table = connection.ops.quote_name(RateCounter._meta.db_table)
    left = _LEFT.format(table=table)
    return template.format(
        table=table,
        left=left,
        is_over=_IS_OVER.format(left=left),
        now=_POSTGRESQL_NOW if vendor == "postgresql" else "%(now)s",
    )
