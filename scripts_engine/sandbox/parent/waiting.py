"""How runs wait: for a slot, for a frame of a child, and who hears of it.

Role in a run: the wait for a slot. A fixed number of slots is shared fairly, with a bounded queue.
The slots know tenants by name, but neither children nor processes: the pool says which tenant's run
must `prepare` (start a child). `scripts_engine/host/resolver.py` limits look-ups with them too.

`PoolObserver` and `Waiting` are what a server adapts. By default, events are ignored and a run
blocks its thread; a server that runs more than threads can wait in its own way.
"""

from __future__ import annotations

import select
import threading
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from math import inf
from typing import Protocol, Self, TypeVar

Result = TypeVar("Result")

# Weight of the latest run in the mean run time, which so follows a change within a dozen runs.
_WEIGHT = 0.2
_MAX_TENANTS = 1000


class KillReason(StrEnum):
    """Why a child was killed, or was found dead."""

    WALL_TIME = "wall-time"
    CPU_TIME = "cpu-time"
    MEMORY = "memory"
    CRASHED = "crashed"
    """The process ended by itself, or was ended from outside."""
    PROTOCOL = "protocol"
    """The child sent an invalid frame."""
    HOST_CALLS = "host-calls"
    """The script went on making host calls after the limit refused them."""
    HOST = "host"
    """The handler of its host calls raised."""
    UNREACHABLE = "unreachable"
    """The child did not take the request: it was dead or stuck before the run began."""


class BusyReason(StrEnum):
    """Why a run found no slot."""

    ALL_SLOTS = "all-slots"
    TENANT_SHARE = "tenant-share"


class PoolObserver:
    """Ignores every event. Overrides are called in the threads of the runs and must be quick."""

    def slots_in_use(self, count: int) -> None:
        """Called with the slots' lock held, after each change."""

    def about_to_wait(self) -> None:
        """Called in the thread of a run that finds no free slot, before it waits."""

    def waiting(self, count: int) -> None:
        """Called with the slots' lock held, after each change."""

    def spawned(self) -> None:
        """A child was started."""

    def killed(self, reason: KillReason) -> None:
        """A child was killed, or found dead."""

    def recycled(self) -> None:
        """A child was ended after its last run, or after a run that ran out of memory."""

    def evicted(self) -> None:
        """A warm child was ended to make room for another tenant."""

    def refused(self, reason: BusyReason) -> None:
        """No slot became free in time, or too many runs waited already."""


class WakeUp(Protocol):
    """Wakes the thread that made it, once."""

    def wait(self, seconds: float) -> bool:
        """Return whether it was set within the time."""

    def set(self) -> None:
        """Called from any thread, at most once."""


class Waiting:
    """Blocks the thread."""

    def until_readable(self, channel: int, events: select.poll, deadline: float) -> bool:
        """Wait for a frame or the end of the child; False at the deadline of `time.monotonic`.

        `events` polls the channel and the process. A process that has ended has closed its end of
        the channel.
        """
        return _has_event_by(deadline, events)

    def until_writable(self, channel: int, events: select.poll, deadline: float) -> bool:
        """Wait until the channel takes bytes or the child has ended; False at the deadline."""
        return _has_event_by(deadline, events)

    def wake_up(self) -> WakeUp:
        return _Lock()

    def in_thread(self, call: Callable[[], Result]) -> Result:
        """Make a call that may block for long, and return its result."""
        return call()


def _has_event_by(deadline: float, events: select.poll) -> bool:
    remaining = deadline - time.monotonic()
    # Rounded up, or the caller would be busy for the last part of a millisecond.
    return remaining > 0 and bool(events.poll(int(remaining * 1000) + 1))


class _Lock:
    """A threading.Event would create three locks."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self, seconds: float) -> bool:
        return self._lock.acquire(timeout=seconds)

    def set(self) -> None:
        self._lock.release()


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
