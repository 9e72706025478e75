"""Every check, bounded in time and in what it writes to the log."""

import threading
from collections.abc import Callable, Mapping

import structlog
from django.conf import settings

from config.operations.sandbox import check_sandbox
from core.bounded import Attempt, Bounded, NoAnswer
from core.database.check import DatabaseCheck, NotReady

logger = structlog.get_logger(__name__)


class Readiness:
    """Asks all checks at once, so that together they take no longer than one may."""

    def __init__(self, checks: Mapping[str, Callable[[], None]], *, seconds: float) -> None:
        self._checks = {name: Bounded(check, seconds=seconds) for name, check in checks.items()}
        self._known: dict[str, str | None] = dict.fromkeys(checks)
        self._lock = threading.Lock()

    def reasons(self) -> dict[str, str | None]:
        """By check: why it fails, or ``None``."""
        attempts = {name: check.start() for name, check in self._checks.items()}
        return {name: self._reason(name, attempt) for name, attempt in attempts.items()}

    def _reason(self, name: str, attempt: Attempt[None]) -> str | None:
        reason, cause = None, None
        try:
            attempt.answer()
        except NoAnswer:
            reason = "timeout"
        except NotReady as not_ready:
            reason, cause = not_ready.reason, not_ready.__cause__
        except Exception as error:  # noqa: BLE001  (an answer all the same)
            reason, cause = "failed", error
        self._log_change(name, reason, cause)
        return reason

    def _log_change(self, name: str, reason: str | None, cause: BaseException | None) -> None:
        """Probes come every few seconds; a line each would bury the one that matters."""
        with self._lock:
            has_changed, self._known[name] = self._known[name] != reason, reason
        if not has_changed:
            return
        if reason is None:
            logger.info("Ready again", check=name)
        else:
            logger.error("Not ready", check=name, reason=reason, cause=cause and str(cause))


readiness = Readiness(
    {"database": DatabaseCheck(), "sandbox": check_sandbox},
    seconds=settings.READINESS_TIMEOUT_SECONDS,
)
