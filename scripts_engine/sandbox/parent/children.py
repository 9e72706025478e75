"""The children of one pool: the warm ones, new ones, and which of them to end.

Role in a run: `find` or `make` a child of the tenant before it, and `give_back` the child after it.
"""

from __future__ import annotations

import threading
from collections import Counter
from enum import Enum, auto

from scripts_engine.sandbox.contract import OutcomeKind
from scripts_engine.sandbox.parent.child_process import ChildProcess
from scripts_engine.sandbox.parent.endings import Ending
from scripts_engine.sandbox.parent.observer import KillReason, PoolObserver
from scripts_engine.sandbox.parent.spawner import Spawner, SpawnFailed


class Change(Enum):
    """A change in the number of children; see PoolStats."""

    SPAWNED = auto()
    KILLED = auto()
    RECYCLED = auto()
    EVICTED = auto()


class Children:
    """At most `most` children, each of one tenant. Thread-safe."""

    def __init__(self, most: int, runs_per_child: int, observer: PoolObserver) -> None:
        self.count = 0
        self.changes: Counter[Change] = Counter()
        self.spawner = Spawner()
        self._most = most
        self._runs_per_child = runs_per_child
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
            self._end(evicted, Change.EVICTED)
            self._observer.evicted()
        try:
            child = self.spawner.spawn()
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
        """Keep the child warm for the tenant's next run, or end it."""
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

    def _end(self, child: ChildProcess, change: Change | None = None) -> None:
        with self._lock:
            self.count -= 1
            if change:
                self.changes[change] += 1
        child.end()


class WarmChildren:
    """The children that wait for a run, least recently used first. Not thread-safe."""

    def __init__(self) -> None:
        self._idle: list[ChildProcess] = []

    def __len__(self) -> int:
        return len(self._idle)

    def add(self, child: ChildProcess) -> None:
        self._idle.append(child)

    def has(self, tenant: str) -> bool:
        return any(child.tenant == tenant for child in self._idle)

    def take(self, tenant: str) -> ChildProcess | None:
        """Remove the tenant's most recently used child."""
        for child in reversed(self._idle):
            if child.tenant == tenant:
                self._idle.remove(child)
                return child
        return None

    def take_least_needed(self) -> ChildProcess:
        """Remove the oldest child that ran only once, or else the oldest of all.

        Many tenants that call once would otherwise evict one that calls all the time. Children
        that ran more often are protected only up to half of the places.
        """
        ran_once = [child for child in self._idle if child.runs == 1]
        if not ran_once or len(ran_once) < len(self._idle) / 2:
            return self._idle.pop(0)
        self._idle.remove(ran_once[0])
        return ran_once[0]

    def take_all(self) -> list[ChildProcess]:
        children, self._idle = self._idle, []
        return children
