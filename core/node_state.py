"""The state of this node, in memory that processes share with those that they fork.

A web worker tells its parent that it is ready or should be replaced, and every process sees whether
the node is draining. The supervisor writes the table of services; web workers read it for /readyz
and /metrics, and note that they serve.

No service but the web server is needed to answer a request, so none makes a node unready: a
jobs runner that dies on every node would otherwise empty the balancer.
"""

import ctypes
import mmap
import signal
from collections.abc import Iterator, Sequence

_READY, _RETIRING = 0, 1
_draining = mmap.mmap(-1, 1)
# Deaths without a stable run in between after which a service counts as unstable.
UNSTABLE_AFTER_DEATHS = 3
# In place of an exit status.
COULD_NOT_START = 256
RUNNING, UNSTABLE, DOWN = "running", "unstable", "down"


class Lifecycle:
    """The flags of one worker, which its parent reads too."""

    def __init__(self) -> None:
        self._flags = mmap.mmap(-1, 2)

    def become_ready(self) -> None:
        self._flags[_READY] = 1

    def retire(self) -> None:
        """Requests a replacement. The worker serves on until its successor is ready."""
        self._flags[_RETIRING] = 1

    @property
    def is_ready(self) -> bool:
        return self._flags[_READY] == 1

    @property
    def is_retiring(self) -> bool:
        return self._flags[_RETIRING] == 1


def start_draining() -> None:
    """Makes /readyz answer 503 from now on. Called by the supervisor."""
    _draining[0] = 1


def is_draining() -> bool:
    return _draining[0] == 1


class ServiceState(ctypes.Structure):
    """The state of one service. Fields are aligned words, so reads never see half a write."""

    _fields_ = [
        ("is_up", ctypes.c_int64),
        ("has_served", ctypes.c_int64),
        ("deaths_in_a_row", ctypes.c_int64),
        ("restarts", ctypes.c_int64),
        ("last_exit", ctypes.c_int64),
    ]
    is_up: int
    has_served: int
    """Whether any process of the service was ever ready to serve."""
    deaths_in_a_row: int
    """Deaths since the last stable run."""
    restarts: int
    last_exit: int
    """The exit status of the last process, or the negative number of its killing signal."""

    @property
    def condition(self) -> str:
        if not self.is_up:
            return DOWN
        return UNSTABLE if self.deaths_in_a_row >= UNSTABLE_AFTER_DEATHS else RUNNING

    @property
    def last_end(self) -> str:
        """``exit-status-1``, ``killed-by-sigkill``, ``could-not-start``."""
        if self.last_exit == COULD_NOT_START:
            return "could-not-start"
        if self.last_exit >= 0:
            return f"exit-status-{self.last_exit}"
        try:
            return f"killed-by-{signal.Signals(-self.last_exit).name.lower()}"
        except ValueError:
            return f"killed-by-signal-{-self.last_exit}"


class ServiceTable:
    """The states of all services of one supervisor, by name."""

    def __init__(self, names: Sequence[str]) -> None:
        size = ctypes.sizeof(ServiceState)
        memory = mmap.mmap(-1, size * len(names))
        self._states = {
            name: ServiceState.from_buffer(memory, number * size)
            for number, name in enumerate(names)
        }

    def __getitem__(self, name: str) -> ServiceState:
        return self._states[name]

    def __iter__(self) -> Iterator[tuple[str, ServiceState]]:
        return iter(self._states.items())


_table: ServiceTable | None = None
_own_state: ServiceState | None = None


def join(table: ServiceTable, name: str) -> None:
    """Called in the process of the service of that name, after the fork."""
    global _table, _own_state
    _table, _own_state = table, table[name]


def services_of_this_node() -> ServiceTable | None:
    """Returns ``None`` in a process that no supervisor has forked."""
    return _table


def note_that_this_service_serves() -> None:
    if _own_state is not None:
        _own_state.has_served = 1


def conditions() -> dict[str, str]:
    """Returns the condition of each service; empty without a supervisor."""
    return {name: state.condition for name, state in services_of_this_node() or ()}


def reasons() -> dict[str, str]:
    """Returns how each service that is down or unstable last ended."""
    return {
        name: state.last_end
        for name, state in services_of_this_node() or ()
        if state.condition != RUNNING
    }
