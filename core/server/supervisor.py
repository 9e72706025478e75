"""The parent of the services: starts them, starts again those that die, and stops them all."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import structlog

from core.server.services import COULD_NOT_START, ServiceState, ServiceTable

logger = structlog.get_logger(__name__)

STOP_GRACE_SECONDS = 5
POLL_SECONDS = 0.1
# See prctl(2).
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Service(NamedTuple):
    name: str
    command: Sequence[str]
    reload_signal: signal.Signals | None = None
    """What it is sent when the supervisor is sent SIGHUP."""
    attempts_to_serve: int | None = None
    """After so many deaths without ever having served the supervisor gives up, if after any."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    pauses_seconds: Sequence[float] = (0, 0.5, 1, 2, 4, 8, 16, 30)
    """Before the first restart, the second, … The last one is kept to."""
    well_after_seconds: float = 60
    """A service that has run for so long begins with the first pause again."""
    handover_seconds: float = 60
    """How long the children of a dead service may go on until its successor is ready to serve."""
    leftovers_seconds: float = 30
    """How long they may finish what they do then, before they are killed."""

    def pause_seconds(self, deaths_in_a_row: int) -> float:
        return self.pauses_seconds[min(deaths_in_a_row, len(self.pauses_seconds)) - 1]


class Supervisor:
    """Runs services until a signal asks for the end.

    Each gets a process group of its own, so that Ctrl-C reaches only the supervisor, which then
    stops them in order; and each is sent SIGTERM by the kernel should the supervisor be killed.
    What a dead service leaves running becomes the supervisor's child, as it does for the first
    process of a container, and is waited for here.
    """

    def __init__(
        self,
        services: Sequence[Service],
        *,
        directory: Path,
        grace_seconds: float,
        policy: RestartPolicy | None = None,
        on_end: Callable[[int], None] = lambda process_id: None,
    ) -> None:
        """`on_end` is called with the id of each service or orphan that has ended."""
        self._on_end = on_end
        self._grace_seconds = grace_seconds + STOP_GRACE_SECONDS
        self._stop_asked = False
        table = ServiceTable.create([service.name for service in services])
        self._supervised = [
            _Supervised(service, table, directory, policy or RestartPolicy())
            for service in services
        ]

    def run(self) -> int:
        """The exit status: 0 after a signal, 1 when a service could not be brought to serve."""
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, self._ask_to_stop)
        signal.signal(signal.SIGHUP, self._reload)
        _adopt_orphans()
        while not self._stop_asked and not any(each.has_failed for each in self._supervised):
            for each in self._supervised:
                each.look_after()
            time.sleep(POLL_SECONDS)
            self._reap()
        self._stop_all()
        return 1 if any(each.has_failed for each in self._supervised) else 0

    def _ask_to_stop(self, signal_number: int, frame: FrameType | None) -> None:
        self._stop_asked = True

    def _reload(self, signal_number: int, frame: FrameType | None) -> None:
        for each in self._supervised:
            each.reload()

    def _reap(self) -> bool:
        """Collects every child that has ended, a service or an orphan; whether any is left."""
        own = {
            each.process.pid: each.process
            for each in self._supervised
            # The number of one that has been waited for may be an orphan's by now.
            if each.process is not None and each.process.returncode is None
        }
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None:
                return True
            if ended.si_pid in own:
                own[ended.si_pid].poll()
            else:
                os.waitpid(ended.si_pid, 0)
            try:
                self._on_end(ended.si_pid)
            except OSError as error:
                logger.error("Cannot clean up after a process", error=str(error))  # noqa: TRY400

    def _stop_all(self) -> None:
        """Asks every service to end, waits, and kills what has not."""
        for each in self._supervised:
            each.ask_to_end()
        deadline = time.monotonic() + self._grace_seconds
        while self._has_survivors() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        for each in self._supervised:
            each.kill()
        # Fork servers end by themselves when their web worker has.
        deadline = time.monotonic() + STOP_GRACE_SECONDS
        while self._reap() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _has_survivors(self) -> bool:
        """Whether a service, or anything that it started in its group, still runs."""
        self._reap()
        return any([each.has_survivors() for each in self._supervised])  # noqa: C419  (asks all)


class _Supervised:
    """One service: its process, what earlier ones left, and when the next one is started."""

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
        self._starts_at = 0.0
        self._leftovers: list[_Leftovers] = []

    def look_after(self) -> None:
        """Notices a death, starts it again when it is time, and ends what it left behind."""
        now = time.monotonic()
        self._clear_leftovers(now)
        if self.process is None:
            if now >= self._starts_at:
                self._start()
        elif self.process.returncode is not None:
            self._note_death(self.process)
        elif now - self._started_at >= self._policy.well_after_seconds:
            self._state.deaths_in_a_row = 0

    def reload(self) -> None:
        if self.process is not None and self._service.reload_signal is not None:
            self.process.send_signal(self._service.reload_signal)

    def ask_to_end(self) -> None:
        for leftovers in self._leftovers:
            leftovers.ask_to_end()
        if self.process is not None:
            self.process.terminate()

    def has_survivors(self) -> bool:
        """Whether anything of it still runs after it was asked to end."""
        if self.process is not None and self.process.returncode is not None:
            # Killed meanwhile, perhaps, and has not told its children.
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

    def _clear_leftovers(self, now: float) -> None:
        has_successor = self.process is not None and self._state.served_by == self.process.pid
        for leftovers in self._leftovers:
            if leftovers.is_asked_to_end and now >= leftovers.until:
                _signal_group(leftovers.group, signal.SIGKILL)
            elif not leftovers.is_asked_to_end and (has_successor or now >= leftovers.until):
                leftovers.ask_to_end()
                leftovers.until = now + self._policy.leftovers_seconds
        # The number of a group that has gone may soon be another's.
        self._leftovers = [each for each in self._leftovers if _signal_group(each.group, 0)]

    def _start(self) -> None:
        try:
            self.process = subprocess.Popen(
                self._service.command,
                cwd=self._directory,
                env=os.environ | self._table.environment(self._service.name),
                pass_fds=[self._table.descriptor],
                process_group=0,
                preexec_fn=partial(prepare, os.getpid()),  # noqa: PLW1509  (there are no threads)
            )
        except (OSError, subprocess.SubprocessError) as error:
            # No memory or no process to be had: that passes.
            self._logger.error(  # noqa: TRY400  (the cause is in the line)
                "Service cannot be started",
                error=str(error),
                next_start_in_seconds=self._put_off(COULD_NOT_START),
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
        pause_seconds = self._put_off(process.returncode)
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

    def _put_off(self, exit_status: int) -> float:
        """Notes a failure, and sets the time of the next start; how long that is from now."""
        state = self._state
        state.is_up = 0
        state.last_exit = exit_status
        state.deaths_in_a_row += 1
        pause_seconds = self._policy.pause_seconds(state.deaths_in_a_row)
        self._starts_at = time.monotonic() + pause_seconds
        return pause_seconds


@dataclass(slots=True)
class _Leftovers:
    """The process group of a dead service: web workers serve on without their parent."""

    group: int
    until: float
    is_asked_to_end: bool = False

    def ask_to_end(self) -> None:
        self.is_asked_to_end = True
        _signal_group(self.group, signal.SIGTERM)


def _signal_group(group: int, signal_number: int) -> bool:
    """Signals all of a service; false when nothing of it is left."""
    try:
        os.killpg(group, signal_number)
    except (ProcessLookupError, PermissionError):
        # The second is said of a number that is another user's by now.
        return False
    return True


def _adopt_orphans() -> None:
    """Where the system can (Linux), the children of a dead service become this process's own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def prepare(parent_id: int) -> None:
    """In the new process: the system (Linux) sends it SIGTERM when its parent dies."""
    # A request to reload must not end a process that does not listen to it yet, or never does.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # The supervisor's handlers, which this process still has, would lose a signal to end.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    # The parent may have died before the line above.
    if os.getppid() != parent_id:
        os._exit(1)
