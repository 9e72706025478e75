"""One service of the supervisor: its process, its restarts, and the processes it left behind."""

import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from core.node_state import COULD_NOT_START, ServiceState, ServiceTable, join

logger = structlog.get_logger(__name__)

# See prctl(2).
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36


def fork_process(run: Callable[[], object]) -> int:
    """Calls the function in a new process, and returns the id of that process. Raises OSError."""
    parent_id = os.getpid()
    process_id = os.fork()
    if process_id:
        return process_id
    exit_status = 1
    try:
        become_child(parent_id)
        run()
        exit_status = 0
    except SystemExit as end:
        exit_status = int(end.code or 0)
    except BaseException:
        logger.exception("Process failed")
    finally:
        # The parent's callers and exit functions are not for this process.
        os._exit(exit_status & 0xFF)


def become_child(parent_id: int) -> None:
    """Sets up the signals of a forked process. SIGTERM will follow if the parent dies (Linux).

    The parent may block signals; those that have come since the fork take effect now.
    """
    # SIGHUP must not end a process that does not handle it, or does not handle it yet.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_DFL)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have died before prctl took effect.
    if os.getppid() != parent_id:
        os._exit(1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def name_process(name: str) -> None:
    """Gives this process a name of at most 15 bytes, which ``ps`` and ``top`` show (Linux)."""
    _prctl(_PR_SET_NAME, name.encode())


def adopt_orphans() -> None:
    """Makes the children of a dead child children of this process (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int | bytes) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


class Service(NamedTuple):
    name: str
    run: Callable[[], object]
    """Called in a process forked from the supervisor's, which ends when it returns."""
    listeners: Sequence[socket.socket] = ()
    """Sockets of the supervisor that are for this service; the others close them."""
    reload_signal: signal.Signals | None = None
    """Sent to the service when the supervisor gets SIGHUP."""
    attempts_to_serve: int | None = None
    """The supervisor gives up after this many deaths before the service ever served."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    pauses_seconds: Sequence[float] = (0, 0.5, 1, 2, 4, 8, 16, 30)
    """Pauses before the first restart, the second and so on; the last one repeats."""
    stable_after_seconds: float = 60
    """A service that has run this long starts over with the first pause."""
    leftovers_seconds: float = 30
    """Time for which the children of a dead service may finish their work; then they are killed."""

    def pause_seconds(self, deaths_in_a_row: int) -> float:
        return self.pauses_seconds[min(deaths_in_a_row, len(self.pauses_seconds)) - 1]


class SupervisedService:
    """Forks a service, forks it again after a death, and ends the process groups of dead ones."""

    def __init__(
        self,
        service: Service,
        table: ServiceTable,
        policy: RestartPolicy,
        *,
        sockets_of_others: Iterable[socket.socket],
    ) -> None:
        self.has_failed = False
        self.next_start_at = 0.0
        self._service = service
        self._sockets_of_others = list(sockets_of_others)
        self._table = table
        self._state: ServiceState = table[service.name]
        self._policy = policy
        self._logger = logger.bind(service=service.name)
        self._is_first_start = True
        self._is_stopping = False
        self._started_at = 0.0
        # 0 while the service does not run.
        self._process_id = 0
        # The process groups of dead processes, and when they are killed.
        self._leftovers: dict[int, float] = {}

    def check(self) -> None:
        """Starts the service when its pause is over, and kills leftovers when theirs is."""
        now = time.monotonic()
        self._leftovers = {
            group: kill_at
            for group, kill_at in self._leftovers.items()
            # The system may soon reuse the number of a group that has ended.
            if _signal_group(group, signal.SIGKILL if now >= kill_at else 0)
        }
        if not self._process_id:
            if now >= self.next_start_at:
                self._start()
        else:
            self._forget_deaths_if_stable()

    def note_end(self, process_id: int, exit_status: int) -> None:
        """Called for every process that has ended."""
        if process_id != self._process_id:
            return
        self._process_id = 0
        # Web workers finish their requests; their successors accept the new ones.
        if _signal_group(process_id, signal.SIGTERM):
            self._leftovers[process_id] = time.monotonic() + self._policy.leftovers_seconds
        if not self._is_stopping:
            self._note_death(process_id, exit_status)

    def reload(self) -> None:
        if self._process_id and self._service.reload_signal is not None:
            os.kill(self._process_id, self._service.reload_signal)

    def terminate(self) -> None:
        self._is_stopping = True
        if self._process_id:
            os.kill(self._process_id, signal.SIGTERM)

    def has_survivors(self) -> bool:
        """Whether any process of the service still runs after ``terminate``."""
        return bool(self._process_id) or any(_signal_group(group, 0) for group in self._leftovers)

    def kill(self) -> None:
        for group in (self._process_id, *self._leftovers):
            if group:
                _signal_group(group, signal.SIGKILL)

    def _start(self) -> None:
        try:
            self._process_id = fork_process(self._run)
        except OSError as error:
            # Usually out of memory or processes, which is temporary.
            self._logger.error(  # noqa: TRY400  (the cause is in the line)
                "Service cannot be started",
                error=str(error),
                next_start_in_seconds=self._schedule_restart(COULD_NOT_START),
            )
            return
        self._started_at = time.monotonic()
        self._state.is_up = 1
        if not self._is_first_start:
            self._state.restarts += 1
            self._logger.info("Service started again", pid=self._process_id)
        self._is_first_start = False

    def _run(self) -> None:
        """Runs in the new process."""
        # A group of its own: Ctrl-C is for the supervisor, which stops the services in order.
        os.setpgid(0, 0)
        name_process(self._service.name)
        for listener in self._sockets_of_others:
            listener.close()
        join(self._table, self._service.name)
        self._service.run()

    def _note_death(self, process_id: int, exit_status: int) -> None:
        self._forget_deaths_if_stable()
        state, attempts = self._state, self._service.attempts_to_serve
        pause_seconds = self._schedule_restart(exit_status)
        if attempts is not None and not state.has_served and state.deaths_in_a_row >= attempts:
            self.has_failed = True
            self._logger.critical(
                "Service cannot start; stopping", ended=state.last_end, attempts=attempts
            )
            return
        self._logger.error(
            "Service ended",
            ended=state.last_end,
            pid=process_id,
            ran_seconds=round(time.monotonic() - self._started_at, 1),
            next_start_in_seconds=pause_seconds,
        )

    def _forget_deaths_if_stable(self) -> None:
        if time.monotonic() - self._started_at >= self._policy.stable_after_seconds:
            self._state.deaths_in_a_row = 0

    def _schedule_restart(self, exit_status: int) -> float:
        """Records a failure and returns the seconds until the next start."""
        state = self._state
        state.is_up = 0
        state.last_exit = exit_status
        state.deaths_in_a_row += 1
        pause_seconds = self._policy.pause_seconds(state.deaths_in_a_row)
        self.next_start_at = time.monotonic() + pause_seconds
        return pause_seconds


def _signal_group(group: int, signal_number: int) -> bool:
    """Signals a process group; false if nothing of it is left."""
    try:
        os.killpg(group, signal_number)
    except (ProcessLookupError, PermissionError):
        # PermissionError: the number already belongs to another user's group.
        return False
    return True
