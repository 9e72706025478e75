"""The sandbox pool of this process, created on first use, with its metrics and health."""

import atexit
import select
from collections.abc import Callable
from enum import Enum

from django.conf import settings

from core import green_threads
from core.built_once import built_once
from core.http.bulkhead import return_pooled_connection
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
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxPool
from scripts_engine.sandbox.parent.waiting import Result, Waiting, WakeUp

# A sandbox process serves one tenant; health checks use one of their own.
_HEALTH_CHECK_TENANT = "readyz"


class SandboxMetrics(PoolObserver):
    def slots_in_use(self, count: int) -> None:
        SANDBOX_SLOTS_IN_USE.set(count)

    def waiting(self, count: int) -> None:
        SANDBOX_WAITING.set(count)

    def spawned(self) -> None:
        SANDBOX_SPAWNS.inc()

    def killed(self, reason: KillReason) -> None:
        SANDBOX_KILLS.labels(reason).inc()

    def recycled(self) -> None:
        SANDBOX_RECYCLED.inc()

    def evicted(self) -> None:
        SANDBOX_EVICTED.inc()

    def refused(self, reason: BusyReason) -> None:
        SANDBOX_REFUSALS.labels(reason).inc()


class _Waiting(Waiting):
    """Lets other green threads go on."""

    def until_readable(self, channel: int, events: select.poll, deadline: float) -> bool:
        if green_threads.current() is None:
            return super().until_readable(channel, events, deadline)
        return bool(green_threads.wait_for(channel, green_threads.READABLE, deadline))

    def until_writable(self, channel: int, events: select.poll, deadline: float) -> bool:
        if green_threads.current() is None:
            return super().until_writable(channel, events, deadline)
        return bool(green_threads.wait_for(channel, green_threads.WRITABLE, deadline))

    def wake_up(self) -> WakeUp:
        return green_threads.WakeUp()

    def in_thread(self, call: Callable[[], Result]) -> Result:
        return green_threads.in_thread(call)


class _Observer(SandboxMetrics):
    def about_to_wait(self) -> None:
        return_pooled_connection()


@built_once
def sandbox_pool() -> SandboxPool:
    pool = SandboxPool(
        size=settings.SANDBOX_SLOTS,
        processes=settings.SANDBOX_PROCESSES,
        queue_size=settings.SANDBOX_QUEUE,
        observer=_Observer(),
        waiting=_Waiting(),
    )
    atexit.register(pool.close)
    return pool


class Health(Enum):
    READY = "ready"
    BUSY = "busy"


def sandbox_health() -> Health:
    """Compiles an empty source in a sandbox, which may wait for a slot or a new process.

    Raises ``SandboxUnavailable``.
    """
    try:
        sandbox_pool().check_syntax(_HEALTH_CHECK_TENANT, b"", "readyz")
    except SandboxBusy:
        return Health.BUSY
    return Health.READY
