"""How this process fares with its pool of database connections."""

import time

from django.db import connection

from core.metrics.catalogue import DATABASE_POOL_ERRORS, DATABASE_POOL_SIZE, DATABASE_POOL_WAITS

_EVERY_SECONDS = 1.0
_next_at = 0.0


def note_pool_usage() -> None:
    """Looks at most once a second: it is called with every request."""
    global _next_at  # noqa: PLW0603
    now = time.monotonic()
    if now < _next_at:
        return
    _next_at = now + _EVERY_SECONDS
    pool = getattr(connection, "pool", None)
    if pool is None:
        return
    figures = pool.get_stats()
    DATABASE_POOL_SIZE.set(figures.get("pool_size", 0))
    DATABASE_POOL_WAITS.set(figures.get("requests_queued", 0))
    DATABASE_POOL_ERRORS.set(figures.get("requests_errors", 0))
