"""A storage for the `limits` library in the database, exact on any number of nodes."""

from datetime import UTC, datetime, timedelta

from django.db import DatabaseError, connection
from django.db.models import F
from django.utils import timezone
from limits.storage import Storage

from accounts.models import RateWindow
from core.database.compiled_query import CompiledQuery, Parameter

# One statement, so that concurrent hits each get their own number. A window that ends later than a
# new one could was made before the clock was set back; it is started again.
_HIT = """
    INSERT INTO {table} (key, hits, ends_at) VALUES (%s, %s, %s)
    ON CONFLICT (key) DO UPDATE SET
        hits = CASE WHEN {table}.ends_at <= %s OR {table}.ends_at > %s
            THEN excluded.hits ELSE {table}.hits + excluded.hits END,
        ends_at = CASE WHEN {table}.ends_at <= %s OR {table}.ends_at > %s
            THEN excluded.ends_at ELSE {table}.ends_at END
    RETURNING hits
"""

# Compiled once, because floods of refused requests run it.
_WINDOW = CompiledQuery(
    RateWindow.objects.filter(key=Parameter("key", RateWindow._meta.get_field("key"))).values_list(
        "hits", "ends_at"
    )
)


def _open_window(key: str) -> tuple[int, datetime] | None:
    """The window's hits and its end; ``None`` if it has ended."""
    window: tuple[int, datetime] | None = _WINDOW.first(key=key)
    return None if window is None or window[1] <= timezone.now() else window


class DatabaseStorage(Storage):
    """Fixed windows, each of which begins with its first hit."""

    STORAGE_SCHEME = ["moonhook+database"]

    @property
    def base_exceptions(self) -> type[Exception]:
        return DatabaseError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        now = timezone.now()
        adapt = connection.ops.adapt_datetimefield_value
        moment, ends_at = adapt(now), adapt(now + timedelta(seconds=expiry))
        # Twice the length, because clocks of nodes differ a little and threads overtake each other.
        latest = adapt(now + timedelta(seconds=2 * expiry))
        with connection.cursor() as cursor:
            cursor.execute(
                _HIT.format(table=connection.ops.quote_name(RateWindow._meta.db_table)),
                [key, amount, ends_at, moment, latest, moment, latest],
            )
            hits: int = cursor.fetchone()[0]
        return hits

    def decrement(self, key: str, most_left: float) -> None:
        """Takes one hit back, unless more than ``most_left`` seconds are left of the window."""
        latest = timezone.now() + timedelta(seconds=most_left)
        hits = RateWindow.objects.open().filter(key=key, hits__gt=0, ends_at__lte=latest)
        hits.update(hits=F("hits") - 1)

    def get(self, key: str) -> int:
        window = _open_window(key)
        return 0 if window is None else window[0]

    def get_expiry(self, key: str) -> float:
        window = _open_window(key)
        return datetime.now(UTC).timestamp() if window is None else window[1].timestamp()

    def check(self) -> bool:
        connection.ensure_connection()
        return True

    def reset(self) -> int:
        deleted, _ = RateWindow.objects.all().delete()
        return deleted

    def clear(self, key: str) -> None:
        RateWindow.objects.filter(key=key).delete()
