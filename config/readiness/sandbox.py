"""Can a script be run?"""

from config.readiness.not_ready import NotReady
from scripts_engine.sandbox.pool import SandboxBusy, SandboxUnavailable
from scripts_engine.sandbox_pool import sandbox_pool

# Sandboxes serve one tenant each; the probe is one of its own.
_TENANT = "readyz"


def check_sandbox() -> None:
    """Raises ``NotReady``."""
    try:
        sandbox_pool().check_syntax(_TENANT, b"", "readyz")
    except SandboxBusy:
        # At work, which is what it is for.
        return
    except SandboxUnavailable as error:
        raise NotReady(_reason_of(error)) from error


def _reason_of(error: SandboxUnavailable) -> str:
    return "missing-layer" if "refuses to serve" in str(error) else "cannot-start"
