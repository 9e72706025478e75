"""Who may run now: a fixed number of slots, shared between tenants, first come first served."""

from __future__ import annotations

import threading

from scripts_engine.sandbox.observer import BusyReason, PoolObserver


class NoSlot(Exception):
    """No slot came free in time."""

    def __init__(self, reason: BusyReason) -> None:
        super().__init__(reason)
        self.reason = reason


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

    A waiter whose tenant is at its share does not hold up those behind it.
    """

    def __init__(self, size: int, tenant_share: int, observer: PoolObserver | None = None) -> None:
        self.size = size
        self.tenant_share = tenant_share
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
        with self._lock:
            if self._may_enter(tenant):
                self._enter(tenant)
                return
            waiter = _Waiter(tenant)
            self._waiters.append(waiter)
        if waiter.turn.acquire(timeout=wait_seconds):
            return
        with self._lock:
            # It may have been granted in the meantime.
            if waiter.is_granted:
                return
            self._waiters.remove(waiter)
            is_at_share = self._held.get(tenant, 0) >= self.tenant_share
        raise NoSlot(BusyReason.TENANT_SHARE if is_at_share else BusyReason.ALL_SLOTS)

    def release(self, tenant: str) -> None:
        with self._lock:
            self._count(-1)
            held = self._held.pop(tenant) - 1
            if held:
                self._held[tenant] = held
            if not self._waiters:
                return
            for waiter in list(self._waiters):
                if self._busy >= self.size:
                    return
                if self._may_enter(waiter.tenant):
                    self._waiters.remove(waiter)
                    self._enter(waiter.tenant)
                    waiter.grant()

    def _may_enter(self, tenant: str) -> bool:
        return self._busy < self.size and self._held.get(tenant, 0) < self.tenant_share

    def _enter(self, tenant: str) -> None:
        self._count(1)
        self._held[tenant] = self._held.get(tenant, 0) + 1

    def _count(self, change: int) -> None:
        self._busy += change
        self._observer.slots_in_use(self._busy)
