"""The state of this node's services, in memory that their parent shares with all of them.

Memory and not a file: a full disk must not stop the one process that keeps the others running.
The parent writes; the web workers read it for /readyz and /metrics, and note that they serve.

None of them is needed to answer a request, so none of them makes a web server unready: it would
take every node out of a balancer when a background worker has died everywhere.
"""

import ctypes
import mmap
import os
import signal
from collections.abc import Iterator, Sequence
from functools import cache

_TABLE, _NAME = "MOONHOOK_SERVICES", "MOONHOOK_SERVICE"
# A service that has died so often without having run well in between is not stable.
UNSTABLE_AFTER_DEATHS = 3
# In place of an exit status.
COULD_NOT_START = 256

RUNNING, UNSTABLE, DOWN = "running", "unstable", "down"


class ServiceState(ctypes.Structure):
    """One service. Each field is an aligned word, so a reader never sees half of a change."""

    _fields_ = [
        ("is_up", ctypes.c_int64),
        ("served_by", ctypes.c_int64),
        ("deaths_in_a_row", ctypes.c_int64),
        ("restarts", ctypes.c_int64),
        ("last_exit", ctypes.c_int64),
    ]
    is_up: int
    served_by: int
    """The id of the last process of the service that was ready to serve; 0 before the first one."""
    deaths_in_a_row: int
    """Deaths since it last ran well."""
    restarts: int
    last_exit: int
    """The exit status of its last process, or the negative number of the signal that killed it."""

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
    """The states of all services that one parent runs, by name."""

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
        """That of this process's parent, where the parent has one."""
        if _TABLE not in os.environ:
            return None
        descriptor, parent_id, *names = os.environ[_TABLE].split(",")
        return cls(names, int(descriptor), int(parent_id))

    def environment(self, name: str) -> dict[str, str]:
        """The variables by which the process of a service finds the table that it inherits."""
        table = ",".join([str(self.descriptor), str(self._parent_id), *self._states])
        return {_TABLE: table, _NAME: name}

    def is_child_of_parent(self) -> bool:
        """Whether this process is one of the services, or was left behind by one and adopted."""
        return os.getppid() == self._parent_id

    def __getitem__(self, name: str) -> ServiceState:
        return self._states[name]

    def __iter__(self) -> Iterator[tuple[str, ServiceState]]:
        return iter(self._states.items())


@cache
def services_of_this_node() -> ServiceTable | None:
    """``None`` in a process that was started by itself."""
    return ServiceTable.from_environment()


def note_that_this_service_serves(process_id: int) -> None:
    """`process_id` is that of the service, of which the caller may be a child."""
    table = services_of_this_node()
    if table is not None:
        table[os.environ[_NAME]].served_by = process_id


def conditions() -> dict[str, str]:
    """By service: running, down, or unstable. Empty in a server that was started by itself."""
    return {name: state.condition for name, state in services_of_this_node() or ()}


def reasons() -> dict[str, str]:
    """By service that does not run as it should: how it ended last."""
    return {
        name: state.last_end
        for name, state in services_of_this_node() or ()
        if state.condition != RUNNING
    }
