"""Who may run now: a fixed number of slots, shared between tenants, behind a bounded queue."""

from __future__ import annotations

import threading
from math import inf

from scripts_engine.sandbox.observer import BusyReason, PoolObserver


class NoSlot(Exception):
    """No slot came free in time, or too many wait for one already."""

    def __init__(self, reason: BusyReason, ahead: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ahead = ahead
        """How many runs each slot has before it would serve this one."""


class _Waiter:
    __slots__ = ("is_granted", "tenant", "turn")

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.is_granted = False
        # Taken until it is granted: an event would make three locks.
        self.turn = threading.Lock()
        self.turn.acquire()

    def grant(self) -> None:
        self.is_granted = True
        self.turn.release()


class _Hold:
    """A context manager of its own: one made of a generator costs three times as much."""

    __slots__ = ("_slots", "_tenant", "_wait_seconds")

    def __init__(self, slots: FairSlots, tenant: str, wait_seconds: float) -> None:
        self._slots = slots
        self._tenant = tenant
        self._wait_seconds = wait_seconds

    def __enter__(self) -> None:
        self._slots.acquire(self._tenant, self._wait_seconds)

    def __exit__(self, *_exception: object) -> None:
        self._slots.release(self._tenant)


class FairSlots:
    """At most `size` holders, at most `tenant_share` of one tenant.

    A free slot goes to the waiting tenant that holds the fewest, and among those to whoever came
    first; a waiter whose tenant is at its share does not hold up those behind it. At most
    `queue_size` wait, at most `tenant_queue_share` of one tenant: any number, unless given.
    """

    def __init__(
        self,
        size: int,
        tenant_share: int,
        observer: PoolObserver | None = None,
        *,
        queue_size: int | None = None,
        tenant_queue_share: int | None = None,
    ) -> None:
        self.size = size
        self.tenant_share = tenant_share
        self._queue_size = inf if queue_size is None else queue_size
        self._tenant_queue_share = inf if tenant_queue_share is None else tenant_queue_share
        self._observer = observer or PoolObserver()
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}
        self._busy = 0
        self._waiters: list[_Waiter] = []

    @property
    def busy(self) -> int:
        return self._busy

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    def hold(self, tenant: str, wait_seconds: float) -> _Hold:
        """Hold a slot, `with` this. Raises NoSlot."""
        return _Hold(self, tenant, wait_seconds)

    def acquire(self, tenant: str, wait_seconds: float) -> None:
        """Raises NoSlot: at once where the queue, or the tenant's share of it, is full."""
        with self._lock:
            if self._may_enter(tenant):
                self._enter(tenant)
                return
            if not self._may_wait(tenant):
                raise self._no_slot(tenant)
            waiter = _Waiter(tenant)
            self._waiters.append(waiter)
            self._observer.waiting(len(self._waiters))
        self._observer.about_to_wait()
        if waiter.turn.acquire(timeout=wait_seconds):
            return
        with self._lock:
            # It may have been granted in the meantime.
            if waiter.is_granted:
                return
            self._leave_queue(waiter)
            raise self._no_slot(tenant)

    def release(self, tenant: str) -> None:
        with self._lock:
            self._count(-1)
            held = self._held.pop(tenant) - 1
            if held:
                self._held[tenant] = held
            while waiter := self._next_waiter():
                self._leave_queue(waiter)
                self._enter(waiter.tenant)
                waiter.grant()

    def _next_waiter(self) -> _Waiter | None:
        if not self._waiters or self._busy >= self.size:
            return None
        allowed = [each for each in self._waiters if self._may_enter(each.tenant)]
        return min(allowed, key=lambda each: self._held.get(each.tenant, 0), default=None)

    def _leave_queue(self, waiter: _Waiter) -> None:
        self._waiters.remove(waiter)
        self._observer.waiting(len(self._waiters))

    def _may_wait(self, tenant: str) -> bool:
        return (
            len(self._waiters) < self._queue_size
            and self._waiters_of(tenant) < self._tenant_queue_share
        )

    def _waiters_of(self, tenant: str) -> int:
        return sum(waiter.tenant == tenant for waiter in self._waiters)

    def _no_slot(self, tenant: str) -> NoSlot:
        of_tenant = self._waiters_of(tenant)
        if self._held.get(tenant, 0) >= self.tenant_share or of_tenant >= self._tenant_queue_share:
            return NoSlot(BusyReason.TENANT_SHARE, (of_tenant + 1) / self.tenant_share)
        return NoSlot(BusyReason.ALL_SLOTS, (len(self._waiters) + 1) / self.size)

    def _may_enter(self, tenant: str) -> bool:
        return self._busy < self.size and self._held.get(tenant, 0) < self.tenant_share

    def _enter(self, tenant: str) -> None:
        self._count(1)
        self._held[tenant] = self._held.get(tenant, 0) + 1

    def _count(self, change: int) -> None:
        self._busy += change
        self._observer.slots_in_use(self._busy)
