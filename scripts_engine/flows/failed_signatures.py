"""Limits how many calls of a hook a client may send with a wrong signature.

Only failures are counted, so that a sender's own calls never fill the count.
"""

import time
import uuid

from accounts.rate_limits.limiter import Count, hit, refuse_if_full
from accounts.rate_limits.windows import FAILED_SIGNATURES_OF_CLIENT
from core.http.client_address import network_of

_ACTION = "hook-signature"
# How long a client that was not throttled is not looked up again, unless it fails here.
FRESH_SECONDS = 1.0
MAX_FRESH = 10_000

# When each client of a hook was last found not to be throttled (``time.monotonic``).
_looked_up_at: dict[tuple[uuid.UUID, str], float] = {}


def refuse_if_throttled(hook_id: uuid.UUID, client_address: str) -> None:
    """Raises ``RateLimitedError`` while the client has failed too often."""
    client = hook_id, network_of(client_address)
    now = time.monotonic()
    if now - _looked_up_at.get(client, -FRESH_SECONDS) < FRESH_SECONDS:
        return
    refuse_if_full(_count_of(*client))
    if len(_looked_up_at) >= MAX_FRESH:
        _looked_up_at.clear()
    _looked_up_at[client] = now


def count_failed_signature(hook_id: uuid.UUID, client_address: str) -> None:
    """Raises ``RateLimitedError`` if the client's other calls have filled the count meanwhile."""
    client = hook_id, network_of(client_address)
    _looked_up_at.pop(client, None)
    count = _count_of(*client)
    hit([count.window], *count.identifiers)


def _count_of(hook_id: uuid.UUID, network: str) -> Count:
    return Count(FAILED_SIGNATURES_OF_CLIENT, (_ACTION, str(hook_id), network))
