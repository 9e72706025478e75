"""Limits concurrent runs: a fixed number of slots, shared fairly, with a bounded queue.

Role in a run: the wait for a slot. Knows tenants by name, but neither children nor processes: the
pool says which tenant's run must `prepare` (start a child). `scripts_engine/host/resolver.py`
limits look-ups with the same class.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from math import inf
from typing import Self

from scripts_engine.sandbox.parent.observer import BusyReason, PoolObserver
from scripts_engine.sandbox.parent.waiting import Waiting, WakeUp

# Weight of the latest run in the mean run time, which so follows a change within a dozen runs.
_WEIGHT = 0.2
_MAX_TENANTS = 1000


class NoSlot(Exception):
    """No slot became free in time, or too many wait already."""

    def __init__(self, reason: BusyReason, ahead: float) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ahead = ahead
        """Runs ahead of this one, per slot."""


class FairSlots:
    """At most `size` slots are held, at most `tenant_share` of them by one tenant.

    A free slot goes to the waiting tenant that holds the fewest, and among equals to the first in
    the queue; a waiter whose tenant is at its share is passed over. At most `queue_size` wait. In a
    full queue, a tenant with fewer than `tenant_queue_share` waiters takes the place of the newest
    waiter of the tenant with the most, if that has more than its share.

    At most `preparing_at_once` holders prepare at the same time. A waiter whose tenant need not
    prepare passes those that wait for their turn to do so.
    """

    def __init__(
        self,
        size: int,
        tenant_share: int,
        observer: PoolObserver | None = None,
        *,
        queue_size: int | None = None,
        tenant_queue_share: int | None = None,
        must_prepare: Callable[[str], bool] = lambda _tenant: False,
        preparing_at_once: int = 1,
        waiting: Waiting | None = None,
    ) -> None:
        """`must_prepare` tells whether a tenant must prepare; it is called with the lock held."""
        self.size = size
        self.tenant_share = tenant_share
        self._queue_size = inf if queue_size is None else queue_size
        self._tenant_queue_share = inf if tenant_queue_share is None else tenant_queue_share
        self._observer = observer or PoolObserver()
        self._waiting = waiting or Waiting()
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}
        self._busy = 0
        self._must_prepare = must_prepare
        self._preparing_at_once = preparing_at_once
        self._preparing = 0
        self._waiters: list[_Waiter] = []

    @property
    def busy(self) -> int:
        return self._busy

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    def hold(self, tenant: str, wait_seconds: float) -> _Hold:
        """Hold a slot in a `with` block. Raises NoSlot."""
        return _Hold(self, tenant, wait_seconds)

    def acquire(self, tenant: str, wait_seconds: float) -> bool:
        """Take a slot and return whether the tenant must prepare, and counts as preparing.

        Raises NoSlot: after the wait, or at once if the queue has no place for this tenant, or when
        another tenant takes its place.
        """
        with self._lock:
            if self._may_enter(tenant):
                return self._enter(tenant)
            if len(self._waiters) >= self._queue_size:
                self._displace_for(tenant)
            waiter = _Waiter(tenant, self._waiting.wake_up())
            self._waiters.append(waiter)
            self._observer.waiting(len(self._waiters))
        self._observer.about_to_wait()
        if waiter.turn.wait(wait_seconds) and waiter.is_granted:
            return waiter.is_preparing
        with self._lock:
            # The slot may have been granted after the timeout.
            if waiter.is_granted:
                return waiter.is_preparing
            if not waiter.is_displaced:
                self._leave_queue(waiter)
            raise self._no_slot(tenant)

    def release(self, tenant: str, was_preparing: bool = False) -> None:
        with self._lock:
            self._count(-1)
            self._preparing -= was_preparing
            held = self._held.pop(tenant) - 1
            if held:
                self._held[tenant] = held
            self._grant_free_slots()

    def end_preparation(self) -> None:
        with self._lock:
            self._preparing -= 1
            self._grant_free_slots()

    def _grant_free_slots(self) -> None:
        while waiter := self._next_waiter():
            self._leave_queue(waiter)
            waiter.grant(self._enter(waiter.tenant))

    def _next_waiter(self) -> _Waiter | None:
        if not self._waiters or self._busy >= self.size:
            return None
        allowed = [each for each in self._waiters if self._may_enter(each.tenant)]
        return min(allowed, key=lambda each: self._held.get(each.tenant, 0), default=None)

    def _leave_queue(self, waiter: _Waiter) -> None:
        self._waiters.remove(waiter)
        self._observer.waiting(len(self._waiters))

    def _displace_for(self, tenant: str) -> None:
        """Make room in the full queue. Raises NoSlot if no tenant exceeds its share of it."""
        waiters = Counter(waiter.tenant for waiter in self._waiters)
        ((largest, count),) = waiters.most_common(1)
        if waiters[tenant] >= self._tenant_queue_share or count <= self._tenant_queue_share:
            raise self._no_slot(tenant)
        newest = next(each for each in reversed(self._waiters) if each.tenant == largest)
        self._leave_queue(newest)
        newest.displace()

    def _waiters_of(self, tenant: str) -> int:
        return sum(waiter.tenant == tenant for waiter in self._waiters)

    def _no_slot(self, tenant: str) -> NoSlot:
        of_tenant = self._waiters_of(tenant)
        if self._held.get(tenant, 0) >= self.tenant_share or of_tenant >= self._tenant_queue_share:
            return NoSlot(BusyReason.TENANT_SHARE, (of_tenant + 1) / self.tenant_share)
        return NoSlot(BusyReason.ALL_SLOTS, (len(self._waiters) + 1) / self.size)

    def _may_enter(self, tenant: str) -> bool:
        if self._busy >= self.size or self._held.get(tenant, 0) >= self.tenant_share:
            return False
        return self._preparing < self._preparing_at_once or not self._must_prepare(tenant)

    def _enter(self, tenant: str) -> bool:
        self._count(1)
        self._held[tenant] = self._held.get(tenant, 0) + 1
        is_preparing = self._must_prepare(tenant)
        self._preparing += is_preparing
        return is_preparing

    def _count(self, change: int) -> None:
        self._busy += change
        self._observer.slots_in_use(self._busy)


class _Hold:
    """The context manager of `hold`. As a class, since a generator costs three times as much."""

    __slots__ = ("_is_preparing", "_slots", "_tenant", "_wait_seconds")

    def __init__(self, slots: FairSlots, tenant: str, wait_seconds: float) -> None:
        self._slots = slots
        self._tenant = tenant
        self._wait_seconds = wait_seconds

    def __enter__(self) -> Self:
        self._is_preparing = self._slots.acquire(self._tenant, self._wait_seconds)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._slots.release(self._tenant, self._is_preparing)

    def is_prepared(self) -> None:
        """Let the next tenant prepare."""
        if self._is_preparing:
            self._is_preparing = False
            self._slots.end_preparation()


class _Waiter:
    __slots__ = ("is_displaced", "is_granted", "is_preparing", "tenant", "turn")

    def __init__(self, tenant: str, turn: WakeUp) -> None:
        self.tenant = tenant
        self.is_displaced = False
        self.is_granted = False
        self.is_preparing = False
        self.turn = turn

    def grant(self, is_preparing: bool) -> None:
        self.is_granted = True
        self.is_preparing = is_preparing
        self.turn.set()

    def displace(self) -> None:
        self.is_displaced = True
        self.turn.set()


class RunTimes:
    """The moving average run time of each tenant, to estimate when a slot is free. Thread-safe."""

    def __init__(self) -> None:
        self._means: dict[str, float] = {}

    def record(self, tenant: str, seconds: float) -> None:
        means = self._means
        mean = means.get(tenant)
        if mean is None and len(means) >= _MAX_TENANTS:
            # Forget all: each tenant is known again after its next run.
            self._means = means = {}
        means[tenant] = seconds if mean is None else mean + _WEIGHT * (seconds - mean)

    def mean_seconds(self, tenant: str) -> float | None:
        return self._means.get(tenant)
