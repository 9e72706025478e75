"""Who may run now: a fixed number of slots, shared between tenants, first come first served."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from scripts_engine.sandbox.observer import BusyReason, PoolObserver


class NoSlot(Exception):
    """No slot came free in time."""

    def __init__(self, reason: BusyReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(eq=False, slots=True)
class _Waiter:
    tenant: str
    granted: threading.Event = field(default_factory=threading.Event)


class FairSlots:
    """At most `size` holders, at most `tenant_share` of one tenant.

    A waiter whose tenant is at its share does not hold up those behind it.
    """

    def __init__(self, size: int, tenant_share: int, observer: PoolObserver | None = None) -> None:
        self.size = size
        self.tenant_share = tenant_share
        self._observer = observer or PoolObserver()
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._busy = 0
        self._waiters: list[_Waiter] = []

    @property
    def busy(self) -> int:
        return self._busy

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    @contextmanager
    def hold(self, tenant: str, wait_seconds: float) -> Iterator[None]:
        """Hold a slot. Raises NoSlot."""
        self._acquire(tenant, wait_seconds)
        try:
            yield
        finally:
            self._release(tenant)

    def _acquire(self, tenant: str, wait_seconds: float) -> None:
        with self._lock:
            if self._may_enter(tenant):
                self._enter(tenant)
                return
            waiter = _Waiter(tenant)
            self._waiters.append(waiter)
        if waiter.granted.wait(wait_seconds):
            return
        with self._lock:
            # It may have been granted in the meantime.
            if waiter.granted.is_set():
                return
            self._waiters.remove(waiter)
            is_at_share = self._held[tenant] >= self.tenant_share
        raise NoSlot(BusyReason.TENANT_SHARE if is_at_share else BusyReason.ALL_SLOTS)

    def _release(self, tenant: str) -> None:
        with self._lock:
            self._count(-1)
            self._held[tenant] -= 1
            if not self._held[tenant]:
                del self._held[tenant]
            for waiter in list(self._waiters):
                if self._busy >= self.size:
                    return
                if self._may_enter(waiter.tenant):
                    self._waiters.remove(waiter)
                    self._enter(waiter.tenant)
                    waiter.granted.set()

    def _may_enter(self, tenant: str) -> bool:
        return self._busy < self.size and self._held[tenant] < self.tenant_share

    def _enter(self, tenant: str) -> None:
        self._count(1)
        self._held[tenant] += 1

    def _count(self, change: int) -> None:
        self._busy += change
        self._observer.slots_in_use(self._busy)
