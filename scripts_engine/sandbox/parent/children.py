"""The children of one pool: the warm ones, new ones, and which of them to end.

Role in a run: `find` or `make` a child of the tenant before it, and `give_back` the child after it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from enum import Enum, auto

from scripts_engine.sandbox.contract import OutcomeKind
from scripts_engine.sandbox.parent.child_frames import Ending
from scripts_engine.sandbox.parent.child_process import (
    ChildProcess,
    Spawner,
    SpawnFailed,
    SystemShortage,
)
from scripts_engine.sandbox.parent.waiting import KillReason, PoolObserver, Waiting

# More at once would delay the run that ends them.
_EXPIRED_AT_ONCE = 8
# A new child needs four descriptors for a moment, and an ended one leaves three. Further ones are
# for what others open at the same time; if that is not enough, the shortage is not of our making.
_EVICTED_FOR_ROOM = 4
# Looking after each run would cost as much as finding a warm child.
_EXPIRIES_PER_IDLE_TIME = 60


class Change(Enum):
    """A change in the number of children; see PoolStats."""

    SPAWNED = auto()
    KILLED = auto()
    RECYCLED = auto()
    EVICTED = auto()
    EXPIRED = auto()


class Children:
    """At most `most` children, each of one tenant. Thread-safe.

    A child that has had no run for `idle_seconds` is ended soon afterwards, after a run of any.
    """

    def __init__(
        self,
        most: int,
        runs_per_child: int,
        idle_seconds: float,
        observer: PoolObserver,
        waiting: Waiting,
    ) -> None:
        self.count = 0
        self.changes: Counter[Change] = Counter()
        self.spawner = Spawner(waiting)
        self._waiting = waiting
        self._most = most
        self._runs_per_child = runs_per_child
        self._idle_seconds = idle_seconds
        self._next_expiry = 0.0
        self._observer = observer
        self._lock = threading.Lock()
        self._warm = WarmChildren()
        self._is_closed = False

    @property
    def idle(self) -> int:
        return len(self._warm)

    def find(self, tenant: str) -> ChildProcess | None:
        """Take a warm child of the tenant, if there is one."""
        with self._lock:
            return self._warm.take(tenant)

    def must_make(self, tenant: str) -> bool:
        """Whether the tenant's next run must wait for a new child.

        False until the fork server has started. Starting it takes longer than any spawn, and all
        tenants may wait for it at the same time.
        """
        if not self.spawner.has_spawned:
            return False
        with self._lock:
            return not self._warm.has(tenant)

    def make(self, tenant: str) -> ChildProcess:
        """Start a child; if there are too many, end the least needed warm one.

        Raises SpawnFailed.
        """
        with self._lock:
            if self._is_closed:
                raise SpawnFailed("the sandbox is closed")
            evicted = self._warm.take_least_needed() if self.count >= self._most else None
            self.count += 1
        if evicted:
            self._evict(evicted)
        try:
            child = self._waiting.in_thread(self._spawn)
        except BaseException:
            with self._lock:
                self.count -= 1
            raise
        child.tenant = tenant
        with self._lock:
            self.changes[Change.SPAWNED] += 1
        self._observer.spawned()
        return child

    def give_back(self, child: ChildProcess, ending: Ending) -> None:
        """Keep the child warm for the tenant's next run, or end it. End some that have expired."""
        self._keep_or_end(child, ending)
        now = time.monotonic()
        if now >= self._next_expiry:
            self._next_expiry = now + self._idle_seconds / _EXPIRIES_PER_IDLE_TIME
            self._end_idle_since(now - self._idle_seconds)

    def kill(self, child: ChildProcess, reason: KillReason) -> None:
        self._end(child, Change.KILLED)
        self._observer.killed(reason)

    def close(self) -> None:
        """End every child and the fork server; no child can be made later."""
        with self._lock:
            self._is_closed = True
            idle = self._warm.take_all()
        for child in idle:
            child.end()
        self.spawner.close()

    def forget(self) -> None:
        """Close the inherited descriptors in a forked copy of the worker.

        The children belong to the original; with a descriptor open here, the fork server would
        outlive it. Takes no lock: a thread that is not in the copy may hold it.
        """
        for child in self._warm.take_all():
            child.forget()
        self.spawner.forget()

    def _spawn(self) -> ChildProcess:
        """Start a child; while the system has no room, end the least needed warm one.

        Raises SpawnFailed.
        """
        for _ in range(_EVICTED_FOR_ROOM):
            try:
                return self.spawner.spawn()
            except SystemShortage:
                with self._lock:
                    evicted = self._warm.take_least_needed() if len(self._warm) else None
                if evicted is None:
                    raise
                self._evict(evicted)
                # Returns after the system has taken the process back.
                self.spawner.exit_status(evicted.pid)
        return self.spawner.spawn()

    def _evict(self, child: ChildProcess) -> None:
        self._end(child, Change.EVICTED)
        self._observer.evicted()

    def _keep_or_end(self, child: ChildProcess, ending: Ending) -> None:
        if ending.kill_reason is not None:
            self.kill(child, ending.kill_reason)
            return
        child.runs += 1
        if child.runs >= self._runs_per_child or ending.kind == OutcomeKind.OUT_OF_MEMORY:
            self._end(child, Change.RECYCLED)
            self._observer.recycled()
            return
        with self._lock:
            if not self._is_closed:
                self._warm.add(child)
                return
        self._end(child)

    def _end_idle_since(self, moment: float) -> None:
        for _ in range(_EXPIRED_AT_ONCE):
            with self._lock:
                expired = self._warm.take_idle_since(moment)
            if expired is None:
                return
            self._end(expired, Change.EXPIRED)

    def _end(self, child: ChildProcess, change: Change | None = None) -> None:
        with self._lock:
            self.count -= 1
            if change:
                self.changes[change] += 1
        child.end()


class WarmChildren:
    """The children that wait for a run. All operations are as fast with many as with few.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self._of_tenant: dict[str, list[ChildProcess]] = {}
        # Sets in the order of addition, so the first one has been idle longest.
        self._ran_once: OrderedDict[ChildProcess, None] = OrderedDict()
        self._ran_again: OrderedDict[ChildProcess, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ran_once) + len(self._ran_again)

    def add(self, child: ChildProcess) -> None:
        child.idle_since = time.monotonic()
        self._of_tenant.setdefault(child.tenant, []).append(child)
        self._group_of(child)[child] = None

    def has(self, tenant: str) -> bool:
        return tenant in self._of_tenant

    def take(self, tenant: str) -> ChildProcess | None:
        """Remove the tenant's most recently used child."""
        children = self._of_tenant.get(tenant)
        return self._remove(children[-1]) if children else None

    def take_least_needed(self) -> ChildProcess:
        """Remove the oldest child that ran only once, or else the oldest of all.

        Many tenants that call once would otherwise evict one that calls all the time. Children
        that ran more often are protected only up to half of the places.
        """
        if self._ran_once and len(self._ran_once) >= len(self) / 2:
            return self._remove(next(iter(self._ran_once)))
        return self._remove(self._oldest())

    def take_idle_since(self, moment: float) -> ChildProcess | None:
        """Remove the oldest child, if it has been idle since before the moment."""
        if not len(self) or (oldest := self._oldest()).idle_since >= moment:
            return None
        return self._remove(oldest)

    def take_all(self) -> list[ChildProcess]:
        children = [*self._ran_once, *self._ran_again]
        for idle in (self._of_tenant, self._ran_once, self._ran_again):
            idle.clear()
        return children

    def _group_of(self, child: ChildProcess) -> OrderedDict[ChildProcess, None]:
        return self._ran_once if child.runs == 1 else self._ran_again

    def _oldest(self) -> ChildProcess:
        first_ones = (next(iter(group)) for group in (self._ran_once, self._ran_again) if group)
        return min(first_ones, key=lambda child: child.idle_since)

    def _remove(self, child: ChildProcess) -> ChildProcess:
        del self._group_of(child)[child]
        children = self._of_tenant[child.tenant]
        children.remove(child)
        if not children:
            del self._of_tenant[child.tenant]
        return child
