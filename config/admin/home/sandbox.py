"""Whether scripts can run here; the page never waits long for it."""

import logging
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from core.admin.display import DANGER, SUCCESS, WARNING
from core.bounded import Bounded, NoAnswer
from scripts_engine.sandbox.parent.layers import Layer, ProbeFailed, active_layers
from scripts_engine.sandbox.parent.pool import PoolStats, SandboxUnavailable
from scripts_engine.sandbox_pool import Health, sandbox_health, sandbox_pool

logger = logging.getLogger(__name__)

_WAIT_SECONDS = 0.5
# What came too late for one page is good for the next: else a sandbox that takes longer to start,
# or to fail, would always be said to be slow.
_KEEP_SECONDS = 60.0
_health = Bounded(sandbox_health, seconds=_WAIT_SECONDS, keep_seconds=_KEEP_SECONDS)
_layers = Bounded(cache(active_layers), seconds=_WAIT_SECONDS)


class _Told(NamedTuple):
    title: str
    colour: str
    text: str


_TOLD = {
    Health.READY: _Told("Healthy", SUCCESS, "Scripts run."),
    Health.BUSY: _Told(
        "Busy", WARNING, "Every slot of this process is taken: calls wait, or get 503."
    ),
}
_DOWN = _Told(
    "Down", DANGER, "No sandbox can be had: calls fail. The log says why; so does check_sandbox."
)
_SLOW = _Told("Slow", WARNING, "It has not answered yet. Load this page again.")


@dataclass(frozen=True, slots=True)
class Sandbox:
    title: str
    colour: str
    text: str
    layers: tuple[Layer, ...] = ()
    pool: PoolStats | None = None
    """The machine's own affairs, where they are told: empty and ``None`` elsewhere."""

    @property
    def missing(self) -> list[Layer]:
        return [layer for layer in self.layers if not layer.is_active]


def sandbox(is_operator: bool) -> Sandbox:
    """How busy the others are, and what the machine lacks, is for superusers."""
    try:
        pool = sandbox_pool().stats()
        told = _told(pool)
        return Sandbox(*told, _known_layers(), pool) if is_operator else Sandbox(*told)
    except Exception:
        logger.exception("The sandbox could not be asked how it is.")
        return Sandbox(*_DOWN)


def _told(pool: PoolStats) -> _Told:
    """A full pool is not asked: the answer would come after the wait for a slot."""
    if pool.busy >= pool.slots:
        return _TOLD[Health.BUSY]
    try:
        return _TOLD[_health()]
    except NoAnswer:
        return _SLOW
    except SandboxUnavailable:
        logger.warning("No sandbox can be had.", exc_info=True)
        return _DOWN


def _known_layers() -> tuple[Layer, ...]:
    """Empty while they are being tried, or where they cannot be."""
    try:
        return _layers()
    except (NoAnswer, ProbeFailed):
        return ()
