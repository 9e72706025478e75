"""/healthz and /readyz: whether this process is alive, and whether it can serve requests."""

import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

import structlog
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from core import node_state
from core.database.readiness import DatabaseCheck, NotReady
from core.http.problem_handlers import safe_methods_only
from core.node_state import is_draining
from core.server.open_files import are_few_files_left
from core.waiting import Attempt, Bounded, NoAnswer, NoThread
from jobs.queue.figures import is_stalled
from scripts_engine.sandbox import SandboxUnavailable
from scripts_engine.sandbox_pool import sandbox_health

logger = structlog.get_logger(__name__)

# What checks that can open no file or socket say; psycopg's "Too many open files" reads like too
# many connections. Any other reason holds, however few files are left.
_MAY_BE_A_LACK_OF_FILES = frozenset(
    {"cannot-be-opened", "cannot-start", "failed", "too-many-connections", "unknown-host"}
)


def check_sandbox() -> None:
    """Raise ``NotReady`` if no sandbox can start. A busy sandbox is ready."""
    try:
        sandbox_health()
    except SandboxUnavailable as error:
        raise NotReady(_reason_of(error)) from error


def check_queue() -> None:
    """Raise ``NotReady`` if queued runs wait although nothing holds them up and none runs."""
    try:
        if is_stalled():
            raise NotReady("stalled")
    finally:
        connection.close()


def _reason_of(error: SandboxUnavailable) -> str:
    return "missing-layer" if "refuses to serve" in str(error) else "cannot-start"


class Readiness:
    """Runs all checks concurrently, so that together they take no longer than one."""

    def __init__(self, checks: Mapping[str, Callable[[], None]], *, seconds: float) -> None:
        self._checks = {name: Bounded(check, seconds=seconds) for name, check in checks.items()}
        self._known: dict[str, str | None] = dict.fromkeys(checks)
        self._lock = threading.Lock()

    def reasons(self) -> dict[str, str | None]:
        """Return why each check fails; None if it passes."""
        attempts = {name: check.start() for name, check in self._checks.items()}
        return {name: self._reason(name, attempt) for name, attempt in attempts.items()}

    def _reason(self, name: str, attempt: Attempt[None]) -> str | None:
        reason: str | None = None
        cause: BaseException | None = None
        try:
            attempt.answer()
        except NoThread as error:
            reason, cause = "no-threads", error
        except NoAnswer:
            reason = "timeout"
        except NotReady as not_ready:
            reason, cause = not_ready.reason, not_ready.__cause__
        except Exception as error:  # noqa: BLE001  (a failure too is an answer)
            reason, cause = "failed", error
        if reason in _MAY_BE_A_LACK_OF_FILES and are_few_files_left():
            # The check may have failed because it could open nothing, so it proves nothing.
            return self._known[name]
        self._log_change(name, reason, cause)
        return reason

    def _log_change(self, name: str, reason: str | None, cause: BaseException | None) -> None:
        """Log changes only: probes arrive every few seconds and would flood the log."""
        with self._lock:
            has_changed, self._known[name] = self._known[name] != reason, reason
        if not has_changed:
            return
        if reason is None:
            logger.info("Ready again", check=name)
        else:
            logger.error("Not ready", check=name, reason=reason, cause=cause and str(cause))


# Requests are answered without these, and nodes without them stay in the balancer.
NOT_NEEDED = frozenset({"queue"})

readiness = Readiness(
    {"database": DatabaseCheck(), "sandbox": check_sandbox, "queue": check_queue},
    seconds=settings.READINESS_TIMEOUT_SECONDS,
)


@safe_methods_only
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200: the process is alive."""
    return JsonResponse({"status": "ok"})


class Report(NamedTuple):
    """What /readyz answers."""

    status: str
    """``ok``, ``degraded``, ``unavailable`` or ``draining``."""
    checks: dict[str, str]
    """``ok`` or ``failed``, by check."""
    services: dict[str, str]
    """The condition of each service of this node; empty without a supervisor."""
    reasons: dict[str, str]
    """Why checks failed and services do not run, by name."""

    @property
    def is_ready(self) -> bool:
        return self.status in {"ok", "degraded"}


def report() -> Report:
    """Run the checks, at most ``READINESS_TIMEOUT_SECONDS``.

    Another service of the node that does not run, and a queue that stands still, only degrade the
    node, as the web server works without them. So does a lack of open files, which passes. A
    process that is about to stop reports "draining" without running the checks.
    """
    if is_draining():
        return Report("draining", {}, {}, {})
    reasons = readiness.reasons()
    if reasons["database"] is not None:
        # Nothing is known of what only the database knows.
        del reasons["queue"]
    troubles = {name: reason for name, reason in reasons.items() if reason is not None}
    failed = {name: reason for name, reason in troubles.items() if name not in NOT_NEEDED}
    degraded = node_state.reasons() | {
        name: reason for name, reason in troubles.items() if name in NOT_NEEDED
    }
    if are_few_files_left():
        degraded["open-files"] = "few-left"
    return Report(
        status="unavailable" if failed else "degraded" if degraded else "ok",
        checks={name: "failed" if name in troubles else "ok" for name in reasons},
        services=node_state.conditions(),
        reasons=failed | degraded,
    )


@safe_methods_only
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if the database answers and a sandbox can start, else 503 with the reasons."""
    found = report()
    document = {name: value for name, value in found._asdict().items() if value}
    return JsonResponse(
        document, status=HTTPStatus.OK if found.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
    )
