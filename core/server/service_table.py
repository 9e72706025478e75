"""The state of this node's services, in memory shared by the supervisor and all of them.

In memory and not in a file, because a full disk must not stop the supervisor. The supervisor
writes it; web workers read it for /readyz and /metrics, and note that they serve.

No service but the web server is needed to answer a request, so none makes a node unready: a
background worker that dies on every node would otherwise empty the balancer.
"""

import ctypes
import mmap
import os
import signal
from collections.abc import Iterator, Sequence
from functools import cache

_TABLE, _NAME = "MOONHOOK_SERVICES", "MOONHOOK_SERVICE"
# Deaths without a stable run in between after which a service counts as unstable.
UNSTABLE_AFTER_DEATHS = 3
# In place of an exit status.
COULD_NOT_START = 256

RUNNING, UNSTABLE, DOWN = "running", "unstable", "down"


class ServiceState(ctypes.Structure):
    """The state of one service. Fields are aligned words, so reads never see half a write."""

    _fields_ = [
        ("is_up", ctypes.c_int64),
        ("served_by", ctypes.c_int64),
        ("deaths_in_a_row", ctypes.c_int64),
        ("restarts", ctypes.c_int64),
        ("last_exit", ctypes.c_int64),
    ]
    is_up: int
    served_by: int
    """The id of the service's last process that was ready to serve; 0 before the first."""
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

    def __init__(self, names: Sequence[str], descriptor: int, parent_id: int) -> None:
        self.descriptor = descriptor
        self._parent_id = parent_id
        size = ctypes.sizeof(ServiceState)
        memory = mmap.mmap(descriptor, size * len(names))
        self._states = {
            name: ServiceState.from_buffer(memory, number * size)
            for number, name in enumerate(names)
        }

    @classmethod
    def create(cls, names: Sequence[str]) -> "ServiceTable":
        descriptor = os.memfd_create("moonhook-services")
        os.ftruncate(descriptor, ctypes.sizeof(ServiceState) * len(names))
        return cls(names, descriptor, os.getpid())

    @classmethod
    def from_environment(cls) -> "ServiceTable | None":
        """Opens the table of the supervisor that started this process, if there is one."""
        if _TABLE not in os.environ:
            return None
        descriptor, parent_id, *names = os.environ[_TABLE].split(",")
        return cls(names, int(descriptor), int(parent_id))

    def environment(self, name: str) -> dict[str, str]:
        """Returns the variables with which a service's process finds its inherited table."""
        table = ",".join([str(self.descriptor), str(self._parent_id), *self._states])
        return {_TABLE: table, _NAME: name}

    def is_child_of_parent(self) -> bool:
        """Whether this process is a service, or was adopted after its service died."""
        return os.getppid() == self._parent_id

    def __getitem__(self, name: str) -> ServiceState:
        return self._states[name]

    def __iter__(self) -> Iterator[tuple[str, ServiceState]]:
        return iter(self._states.items())


@cache
def services_of_this_node() -> ServiceTable | None:
    """Returns ``None`` in a process that no supervisor has started."""
    return ServiceTable.from_environment()


def note_that_this_service_serves(process_id: int) -> None:
    """``process_id`` is the service's, of which the caller may be a child."""
    table = services_of_this_node()
    if table is not None:
        table[os.environ[_NAME]].served_by = process_id


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
