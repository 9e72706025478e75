"""Whether scripts can run on this node. The page waits only briefly for the answer."""

import logging
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from core.admin.display import DANGER, SUCCESS, WARNING
from core.waiting import Bounded, NoAnswer
from scripts_engine.sandbox import Layer, PoolStats, ProbeFailed, SandboxUnavailable, active_layers
from scripts_engine.sandbox_pool import Health, sandbox_health, sandbox_pool

logger = logging.getLogger(__name__)

_WAIT_SECONDS = 0.5
# An answer that is too late for one page is used for the next. Otherwise a sandbox that takes
# longer to start, or to fail, would always be reported as slow.
_KEEP_SECONDS = 60.0
_health = Bounded(sandbox_health, seconds=_WAIT_SECONDS, keep_seconds=_KEEP_SECONDS)
_layers = Bounded(cache(active_layers), seconds=_WAIT_SECONDS)


class _State(NamedTuple):
    title: str
    colour: str
    text: str


_STATES = {
    Health.READY: _State("Healthy", SUCCESS, "Scripts can run."),
    Health.BUSY: _State(
        "Busy", WARNING, "All slots of this worker are busy: calls wait or are answered with 503."
    ),
}
_DOWN = _State(
    "Down", DANGER, "No sandbox can start: calls fail. The log and check_sandbox show the reason."
)
_SLOW = _State("Slow", WARNING, "The sandbox has not answered yet. Reload this page.")


@dataclass(frozen=True, slots=True)
class Sandbox:
    title: str
    colour: str
    text: str
    layers: tuple[Layer, ...] = ()
    pool: PoolStats | None = None
    """``layers`` and ``pool`` are for superusers: empty and None for others."""

    @property
    def missing(self) -> list[Layer]:
        return [layer for layer in self.layers if not layer.is_active]


def sandbox(is_operator: bool) -> Sandbox:
    """Return the sandbox's state; for superusers, with the node's layers and pool."""
    try:
        pool = sandbox_pool().stats()
        state = _state(pool)
        return Sandbox(*state, _known_layers(), pool) if is_operator else Sandbox(*state)
    except Exception:
        logger.exception("The state of the sandbox cannot be read.")
        return Sandbox(*_DOWN)


def _state(pool: PoolStats) -> _State:
    """Do not ask a full pool, which would answer only after the wait for a slot."""
    if pool.busy >= pool.slots:
        return _STATES[Health.BUSY]
    try:
        return _STATES[_health()]
    except NoAnswer:
        return _SLOW
    except SandboxUnavailable:
        logger.warning("No sandbox can start.", exc_info=True)
        return _DOWN


def _known_layers() -> tuple[Layer, ...]:
    """Return the layers; none while they are being checked, or if the check fails."""
    try:
        return _layers()
    except (NoAnswer, ProbeFailed):
        return ()
