"""The children that wait for a run: of a tenant the latest used first."""

from __future__ import annotations

from scripts_engine.sandbox.parent.child_process import ChildProcess


class WarmChildren:
    """Not thread-safe: the pool holds its lock. In order of use, the oldest first."""

    def __init__(self) -> None:
        self._idle: list[ChildProcess] = []

    def __len__(self) -> int:
        return len(self._idle)

    def add(self, child: ChildProcess) -> None:
        self._idle.append(child)

    def has(self, tenant: str) -> bool:
        return any(child.tenant == tenant for child in self._idle)

    def take(self, tenant: str) -> ChildProcess | None:
        for child in reversed(self._idle):
            if child.tenant == tenant:
                self._idle.remove(child)
                return child
        return None

    def take_least_needed(self) -> ChildProcess:
        """To give it up: the oldest of those that ran once, so that many tenants who come once
        do not push out one who comes all the time. Half of the places may be kept like that.
        """
        ran_once = [child for child in self._idle if child.runs == 1]
        if not ran_once or len(ran_once) < len(self._idle) / 2:
            return self._idle.pop(0)
        self._idle.remove(ran_once[0])
        return ran_once[0]

    def take_all(self) -> list[ChildProcess]:
        children, self._idle = self._idle, []
        return children
