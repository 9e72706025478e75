"""The pool's observer that counts."""

from core.metrics.catalogue import (
    SANDBOX_EVICTED,
    SANDBOX_KILLS,
    SANDBOX_RECYCLED,
    SANDBOX_REFUSALS,
    SANDBOX_SLOTS_IN_USE,
    SANDBOX_SPAWNS,
    SANDBOX_WAITING,
)
from scripts_engine.sandbox.parent.observer import BusyReason, KillReason, PoolObserver


class SandboxMetrics(PoolObserver):
    def slots_in_use(self, count: int) -> None:
        SANDBOX_SLOTS_IN_USE.set(count)

    def waiting(self, count: int) -> None:
        SANDBOX_WAITING.set(count)

    def spawned(self) -> None:
        SANDBOX_SPAWNS.inc()

    def killed(self, reason: KillReason) -> None:
        SANDBOX_KILLS.inc(reason)

    def recycled(self) -> None:
        SANDBOX_RECYCLED.inc()

    def evicted(self) -> None:
        SANDBOX_EVICTED.inc()

    def refused(self, reason: BusyReason) -> None:
        SANDBOX_REFUSALS.inc(reason)
