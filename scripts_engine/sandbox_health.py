"""Whether a script could be run in this process, now."""

from enum import Enum

from scripts_engine.sandbox.parent.pool import SandboxBusy
from scripts_engine.sandbox_pool import sandbox_pool

# Sandboxes serve one tenant each; whoever asks is one of its own.
_TENANT = "readyz"


class Health(Enum):
    READY = "ready"
    BUSY = "busy"


def sandbox_health() -> Health:
    """Has a sandbox compile nothing; it may wait for a slot, or for a new process.

    Raises ``SandboxUnavailable``.
    """
    try:
        sandbox_pool().check_syntax(_TENANT, b"", "readyz")
    except SandboxBusy:
        return Health.BUSY
    return Health.READY
