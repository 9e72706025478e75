"""Whether scripts can run here, for people to see: asked without ever waiting long."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import dataclass
from enum import Enum
from threading import Lock, Thread
from typing import Generic, TypeVar

from scripts_engine.sandbox.layers import Layer, ProbeFailed, active_layers
from scripts_engine.sandbox.pool import PoolStats, SandboxBusy, SandboxUnavailable
from scripts_engine.sandbox_pool import sandbox_pool

logger = logging.getLogger(__name__)

# Sandboxes serve one tenant each; whoever asks is one of its own.
_TENANT = "readyz"
_WAIT_SECONDS = 0.5

Answer = TypeVar("Answer")


class Health(Enum):
    READY = "ready"
    BUSY = "busy"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"
    """It has not answered in time."""


@dataclass(frozen=True, slots=True)
class SandboxState:
    """Of this process and of the machine it runs on."""

    health: Health
    layers: tuple[Layer, ...]
    """Empty while they are being tried, or where they cannot be."""
    pool: PoolStats


def sandbox_health() -> Health:
    """Has a sandbox compile nothing. It may have to wait for a slot, or for a new process."""
    try:
        sandbox_pool().check_syntax(_TENANT, b"", "readyz")
    except SandboxBusy:
        return Health.BUSY
    except SandboxUnavailable:
        logger.exception("No sandbox can be had")
        return Health.UNAVAILABLE
    return Health.READY


def sandbox_state() -> SandboxState:
    """Answers within a second or so, whatever the sandbox does."""
    health = _health.answer_within(_WAIT_SECONDS) or Health.UNKNOWN
    layers = _layers.answer_within(_WAIT_SECONDS) or ()
    return SandboxState(health, layers, sandbox_pool().stats())


class _Check(Generic[Answer]):
    """A question that runs in a thread of its own, never twice at once."""

    def __init__(self, ask: Callable[[], Answer], *, is_lasting: bool = False) -> None:
        """A lasting answer is asked for once."""
        self._ask = ask
        self._is_lasting = is_lasting
        self._lock = Lock()
        self._answer: Future[Answer] | None = None

    def answer_within(self, seconds: float) -> Answer | None:
        """``None`` when there is none by then; what was asked goes on for the next who asks."""
        with self._lock:
            if self._answer is None or (self._answer.done() and not self._is_kept(self._answer)):
                self._answer = Future()
                Thread(target=self._run, args=[self._answer], daemon=True).start()
            answer = self._answer
        try:
            return answer.result(seconds)
        except (StillRunning, ProbeFailed):
            return None

    def _run(self, answer: "Future[Answer]") -> None:
        try:
            answer.set_result(self._ask())
        except BaseException as error:  # noqa: BLE001  (it is raised where the answer is read)
            answer.set_exception(error)

    def _is_kept(self, answer: "Future[Answer]") -> bool:
        return self._is_lasting and answer.exception() is None


_health = _Check(sandbox_health)
_layers = _Check(active_layers, is_lasting=True)
