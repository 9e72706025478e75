"""The sandbox pool of this process: its lockdown and its size, its metrics and its health."""

import atexit
import logging
import select
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from core import waiting
from core.caches import built_once
from core.server.open_files import allow_open_files
from scripts_engine.metrics import (
    SANDBOX_EVICTED,
    SANDBOX_KILLS,
    SANDBOX_RECYCLED,
    SANDBOX_REFUSALS,
    SANDBOX_SLOTS_IN_USE,
    SANDBOX_SPAWNS,
    SANDBOX_WAITING,
)
from scripts_engine.sandbox import (
    BusyReason,
    KillReason,
    Layer,
    PoolObserver,
    SandboxBusy,
    SandboxPool,
    Waiting,
    WakeUp,
    active_layers,
)

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

# A sandbox process serves one tenant; health checks use one of their own.
_HEALTH_CHECK_TENANT = "readyz"
REQUIRED_LAYER = "seccomp"
# The socket, the pidfd and the log area of a sandbox process.
FILES_PER_PROCESS = 3
# Database and log, scripts' connections to other servers, and a margin.
_OTHER_FILES = 500


class _Observer(PoolObserver):
    def about_to_wait(self) -> None:
        waiting.return_pooled_connection()

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
        if waiting.current() is None:
            return super().until_readable(channel, events, deadline)
        return bool(waiting.wait_for(channel, waiting.READABLE, deadline))

    def until_writable(self, channel: int, events: select.poll, deadline: float) -> bool:
        if waiting.current() is None:
            return super().until_writable(channel, events, deadline)
        return bool(waiting.wait_for(channel, waiting.WRITABLE, deadline))

    def wake_up(self) -> WakeUp:
        return waiting.WakeUp()

    def in_thread(self, call: Callable[[], Result]) -> Result:
        return waiting.in_thread(call)


class PoolSize(NamedTuple):
    slots: int
    processes: int


_size: PoolSize | None = None


def pool_size() -> PoolSize:
    """What the settings say, unless this process has fitted its pool to something else."""
    return _size or PoolSize(settings.SANDBOX_SLOTS, settings.SANDBOX_PROCESSES)


def set_pool_size(size: PoolSize) -> None:
    """For this process and those that it forks, before the pool is used."""
    global _size  # noqa: PLW0603  (a process has one pool)
    _size = size


@built_once
def sandbox_pool() -> SandboxPool:
    size = pool_size()
    pool = SandboxPool(
        size=size.slots,
        processes=size.processes,
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


def require_lockdown() -> list[Layer]:
    """Returns the inactive layers, to be reported at start-up.

    Raises ``ImproperlyConfigured`` in production if seccomp is inactive: a vulnerability of the
    Lua interpreter would then expose the machine.
    """
    missing = [layer for layer in active_layers() if not layer.is_active]
    for layer in missing:
        if settings.IS_PRODUCTION and layer.name == REQUIRED_LAYER:
            raise ImproperlyConfigured(
                f"The sandbox's {layer.name} layer is not active: {layer.detail}. "
                "Moonhook does not run scripts in production without it."
            )
    return missing


def fit_to_open_files(*, connections: int = 0) -> int:
    """Raises the limit of open files as far as needed and allowed.

    If less is allowed, the pool keeps fewer sandbox processes in proportion. Returns how many
    connections of clients fit: otherwise they would take what sandboxes and the database need.
    """
    slots, wanted = pool_size()
    needed = connections + FILES_PER_PROCESS * wanted + _OTHER_FILES
    limit = min(allow_open_files(needed), needed)
    fitting = max(wanted * limit // needed, slots)
    if fitting < wanted:
        set_pool_size(PoolSize(slots, fitting))
        logger.warning(
            "Keeping at most %d sandbox processes instead of %d: the limit is %d open files",
            fitting,
            wanted,
            limit,
        )
    return connections * limit // needed
