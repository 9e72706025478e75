"""Limits how often a hook is called: one token bucket per hook, over all nodes."""

import uuid

from accounts.rate_limits.token_bucket import take_token


def check_call_limit(hook_id: uuid.UUID, *, calls_per_minute: int | None, burst: int) -> None:
    """Takes a token for one verified call. Raises ``RateLimitedError`` and takes none.

    ``calls_per_minute`` is ``None`` for a hook without a limit, which costs nothing; ``burst`` is
    how many calls may come at once. ``RATE_LIMITS=off`` switches this limit off too.
    """
    if calls_per_minute is not None:
        take_token("hook-calls", str(hook_id), per_minute=calls_per_minute, burst=burst)
