"""Limits how many wrong signatures of a client a hook answers like any other refusal.

Only wrong signatures are counted and limited, once they have been verified: clients share
addresses, and a right signature is never refused because of the others. A count belongs to the
signing secrets that are live, so what failed before one was set or rotated does not count after it.
"""

import uuid
from collections.abc import Sequence

from accounts.rate_limits.limiter import hit
from accounts.rate_limits.windows import FAILED_SIGNATURES_OF_CLIENT
from core.http.client_address import network_of
from scripts_engine.flows.rules_of_call import StoredSecret

_ACTION = "hook-signature"


def count_failed_signature(
    hook_id: uuid.UUID, client_address: str, secrets: Sequence[StoredSecret]
) -> None:
    """Raises ``RateLimitedError`` if the client has failed too often with these live secrets."""
    state = [str(secret.id) for secret in secrets]
    hit([FAILED_SIGNATURES_OF_CLIENT], _ACTION, str(hook_id), network_of(client_address), *state)
