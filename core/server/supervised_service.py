"""One service under the supervisor: its process, its restarts, and the processes it left behind."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from core.server.service_table import COULD_NOT_START, ServiceState, ServiceTable

logger = structlog.get_logger(__name__)

# See prctl(2).
_PR_SET_PDEATHSIG = 1


class Service(NamedTuple):
    name: str
    command: Sequence[str]
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
    handover_seconds: float = 60
    """Time for which the children of a dead service may wait for its successor to serve."""
    leftovers_seconds: float = 30
    """Time for which they may then finish their work before they are killed."""

    def pause_seconds(self, deaths_in_a_row: int) -> float:
        return self.pauses_seconds[min(deaths_in_a_row, len(self.pauses_seconds)) - 1]


class SupervisedService:
    """Starts a service, restarts it after a death, and ends the process groups of dead ones."""

    def __init__(
        self, service: Service, table: ServiceTable, directory: Path, policy: RestartPolicy
    ) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.has_failed = False
        self._service = service
        self._table = table
        self._state: ServiceState = table[service.name]
        self._directory = directory
        self._policy = policy
        self._logger = logger.bind(service=service.name)
        self._is_first_start = True
        self._started_at = 0.0
        self._next_start_at = 0.0
        self._leftovers: list[_Leftovers] = []

    def check(self) -> None:
        """Notices a death, restarts the service when its pause is over, and ends leftovers."""
        now = time.monotonic()
        self._clear_leftovers(now)
        if self.process is None:
            if now >= self._next_start_at:
                self._start()
        elif self.process.returncode is not None:
            self._note_death(self.process)
        elif now - self._started_at >= self._policy.stable_after_seconds:
            self._state.deaths_in_a_row = 0

    def reload(self) -> None:
        if self.process is not None and self._service.reload_signal is not None:
            self.process.send_signal(self._service.reload_signal)

    def terminate(self) -> None:
        for leftovers in self._leftovers:
            leftovers.terminate()
        if self.process is not None:
            self.process.terminate()

    def has_survivors(self) -> bool:
        """Whether any process of the service still runs after ``terminate``."""
        if self.process is not None and self.process.returncode is not None:
            # The service may have been killed before it could pass the signal to its children.
            _signal_group(self.process.pid, signal.SIGTERM)
        return any(_signal_group(group, 0) for group in self._groups())

    def kill(self) -> None:
        for group in self._groups():
            _signal_group(group, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def _groups(self) -> list[int]:
        groups = [leftovers.group for leftovers in self._leftovers]
        return groups if self.process is None else [*groups, self.process.pid]

    def _start(self) -> None:
        try:
            self.process = subprocess.Popen(
                self._service.command,
                cwd=self._directory,
                env=os.environ | self._table.environment(self._service.name),
                pass_fds=[self._table.descriptor],
                process_group=0,
                preexec_fn=partial(prepare_process, os.getpid()),  # noqa: PLW1509  (no threads)
            )
        except (OSError, subprocess.SubprocessError) as error:
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
            self._logger.info("Service started again", pid=self.process.pid)
        self._is_first_start = False

    def _note_death(self, process: subprocess.Popen[bytes]) -> None:
        state, attempts = self._state, self._service.attempts_to_serve
        pause_seconds = self._schedule_restart(process.returncode)
        if attempts is not None and not state.served_by and state.deaths_in_a_row >= attempts:
            self.has_failed = True
            self._logger.critical(
                "Service cannot start; stopping", ended=state.last_end, attempts=attempts
            )
            return
        self._logger.error(
            "Service ended",
            ended=state.last_end,
            pid=process.pid,
            ran_seconds=round(time.monotonic() - self._started_at, 1),
            next_start_in_seconds=pause_seconds,
        )
        self.process = None
        handover_seconds = self._policy.handover_seconds
        self._leftovers.append(_Leftovers(process.pid, time.monotonic() + handover_seconds))

    def _schedule_restart(self, exit_status: int) -> float:
        """Records a failure and returns the seconds until the next start."""
        state = self._state
        state.is_up = 0
        state.last_exit = exit_status
        state.deaths_in_a_row += 1
        pause_seconds = self._policy.pause_seconds(state.deaths_in_a_row)
        self._next_start_at = time.monotonic() + pause_seconds
        return pause_seconds

    def _clear_leftovers(self, now: float) -> None:
        has_successor = self.process is not None and self._state.served_by == self.process.pid
        for leftovers in self._leftovers:
            if leftovers.is_terminated and now >= leftovers.deadline:
                _signal_group(leftovers.group, signal.SIGKILL)
            elif not leftovers.is_terminated and (has_successor or now >= leftovers.deadline):
                leftovers.terminate()
                leftovers.deadline = now + self._policy.leftovers_seconds
        # The system may soon reuse the number of a group that has ended.
        self._leftovers = [each for each in self._leftovers if _signal_group(each.group, 0)]


@dataclass(slots=True)
class _Leftovers:
    """The process group of a dead service: web workers serve on without their parent."""

    group: int
    deadline: float
    is_terminated: bool = False

    def terminate(self) -> None:
        self.is_terminated = True
        _signal_group(self.group, signal.SIGTERM)


def _signal_group(group: int, signal_number: int) -> bool:
    """Signals a process group; false if nothing of it is left."""
    try:
        os.killpg(group, signal_number)
    except (ProcessLookupError, PermissionError):
        # PermissionError: the number already belongs to another user's group.
        return False
    return True


def prepare_process(parent_id: int) -> None:
    """Runs in the new process before exec: SIGTERM will follow if the parent dies (Linux)."""
    # SIGHUP must not end a process that does not handle it, or does not handle it yet.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # The handlers inherited from the supervisor would swallow a signal to end.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have died before prctl took effect.
    if os.getppid() != parent_id:
        os._exit(1)
