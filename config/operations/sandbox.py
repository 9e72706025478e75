"""Can a script be run?"""

from core.database.check import NotReady
from scripts_engine.sandbox.parent.pool import SandboxUnavailable
from scripts_engine.sandbox_pool import sandbox_health


def check_sandbox() -> None:
    """Raises ``NotReady``. A busy one is at work, which is what it is for."""
    try:
        sandbox_health()
    except SandboxUnavailable as error:
        raise NotReady(_reason_of(error)) from error


def _reason_of(error: SandboxUnavailable) -> str:
    return "missing-layer" if "refuses to serve" in str(error) else "cannot-start"
