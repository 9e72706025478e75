"""Children as the worker sees them: one child, and the fork server that starts them.

Role in a run: `conversation` exchanges frames with a `ChildProcess`, bounds its CPU time and kills
it. `Spawner` is used only if the tenant has no warm child.
"""

from __future__ import annotations

import errno
import math
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from scripts_engine.sandbox.parent import child_frames
from scripts_engine.sandbox.parent.child_frames import Frame, Ready, Refused
from scripts_engine.sandbox.parent.waiting import Waiting
from scripts_engine.sandbox.protocol import (
    EXIT_STATUS,
    FORK,
    FROM_CHILD,
    NUMBER,
    FrameReader,
    LogArea,
    ProtocolError,
)

# CPUCLOCK_SCHED of the kernel: user and system time.
_PROCESS_CPU_CLOCK = 2
# The longest tick that Linux is built with: 100 per second.
_TICK_SECONDS = 0.01
LOWEST_PRIORITY = 19

SPAWN_SECONDS = 10.0

_PROJECT_ROOT = Path(__file__).resolve().parents[3]
# Modules register functions that would run in each new child, and copy its pages: threading, which
# zoneinfo imports since Python 3.13, would double them. No child needs one.
_PREPARE = (
    "import os, sys; sys.path.insert(0, sys.argv[1]); "
    "os.register_at_fork = lambda **functions: None; "
)
_START = (
    _PREPARE + "from scripts_engine.sandbox.child.fork_server import main; main(int(sys.argv[2]))"
)
_ANSWER_SECONDS = 10.0
# With each new child: its socket, pidfd and log file.
_DESCRIPTORS = 3
_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}
# Each run allocates and frees over a thousand small blocks for its Lua state. The per-thread cache
# of glibc keeps only seven of a size; without it a child needs a fifth less CPU time and no more
# memory. Other C libraries ignore the variable.
_ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}


class ChildDied(Exception):
    """The process ended before it answered."""


class DeadlinePassed(Exception):
    """The process did not answer in time."""


class ChildProcess:
    """A child process, used by one thread at a time. None of its messages is trusted."""

    def __init__(
        self,
        pid: int,
        channel: socket.socket,
        pidfd: int,
        log_file: int,
        waiting: Waiting | None = None,
    ) -> None:
        """Take over the descriptors. Raises OSError after it has ended the process."""
        self.pid = pid
        self.waiting = waiting or Waiting()
        self.tenant = ""
        self.runs = 0
        self.idle_since = 0.0
        self.cpu_seconds = 0.0
        self.has_lowest_priority = False
        self._armed_cpu_seconds: int | None = None
        self._channel = channel
        self._channel.setblocking(False)
        self._pidfd = pidfd
        try:
            self.log_area = LogArea(log_file)
        except OSError:
            self.kill()
            self._close()
            raise
        self._reader = FrameReader(FROM_CHILD, child_frames.read)
        self._events = select.poll()
        self._events.register(channel.fileno(), select.POLLIN)
        self._events.register(pidfd, select.POLLIN)

    def arm_cpu(self, seconds: int) -> None:
        """Allow the process this much more CPU time; then the kernel ends it with SIGXCPU.

        The limit is in whole seconds of the whole process, so a run gets up to one second more.
        The process cannot change its limits, so an unchanged sum needs no system call.
        """
        soft = math.ceil(self.cpu_seconds + seconds)
        if soft != self._armed_cpu_seconds:
            resource.prlimit(self.pid, resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
            self._armed_cpu_seconds = soft

    def take_lowest_priority(self) -> None:
        """Lower the priority for good, since only root may raise it again."""
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, self.pid, LOWEST_PRIORITY)
        self.has_lowest_priority = True

    def most_cpu_seconds(self) -> float:
        """The most CPU time that the process may have used, or infinity if it is unknown."""
        try:
            # The clock id of another process, as clock_getcpuclockid computes it. While the
            # process runs, the kernel updates the clock only with each tick.
            return time.clock_gettime((~self.pid << 3) | _PROCESS_CPU_CLOCK) + _TICK_SECONDS
        except OSError:
            return math.inf

    def has_more_to_say(self) -> bool:
        """Whether bytes have arrived after the last received frame."""
        return self._reader.has_rest

    def send(self, frame: bytes, deadline: float) -> None:
        """Send a whole frame. Raises ChildDied, DeadlinePassed."""
        sent = 0
        while sent < len(frame):
            try:
                sent += self._channel.send(memoryview(frame)[sent:] if sent else frame)
            except BlockingIOError:
                self._wait_until_writable(deadline)
            except OSError as error:
                raise ChildDied from error

    def receive(self, deadline: float) -> Frame:
        """The next frame, checked. Raises ChildDied, DeadlinePassed, ProtocolError."""
        while (message := self._reader.next_frame()) is None:
            if not self._wait_until_readable(deadline):
                raise DeadlinePassed
            try:
                count = self._reader.receive_from(self._channel)
            except BlockingIOError:
                # No data, so the pidfd ended the wait: the process has ended.
                raise ChildDied from None
            except OSError as error:
                raise ChildDied from error
            if not count:
                raise ChildDied
        return message

    def kill(self) -> None:
        """Kill the process with SIGKILL, which it cannot delay."""
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            return

    def forget(self) -> None:
        """Close the worker's descriptors and leave the process alone."""
        self._close()
        self.log_area.close()

    def end(self) -> None:
        """Kill the process and close the worker's descriptors."""
        self.kill()
        self.forget()

    def _close(self) -> None:
        self._channel.close()
        os.close(self._pidfd)

    def _wait_until_readable(self, deadline: float) -> bool:
        return self.waiting.until_readable(self._channel.fileno(), self._events, deadline)

    def _wait_until_writable(self, deadline: float) -> None:
        events = select.poll()
        events.register(self._channel.fileno(), select.POLLOUT)
        events.register(self._pidfd, select.POLLIN)
        if not self.waiting.until_writable(self._channel.fileno(), events, deadline):
            raise DeadlinePassed


class SpawnFailed(Exception):
    """No child could be started."""


class SystemShortage(SpawnFailed):
    """The system has no descriptor, process or memory left for a child."""


def _spawn_failed(error: OSError) -> SpawnFailed:
    failure = SystemShortage if error.errno in _SHORTAGES else SpawnFailed
    return failure((error.strerror or str(error)).lower())


class Spawner:
    """Starts children through one fork server at a time. Thread-safe."""

    def __init__(self, waiting: Waiting | None = None) -> None:
        """Start nothing yet: the fork server starts with the first child."""
        self._waiting = waiting or Waiting()
        self.fork_servers = 0
        """Started so far."""
        self._lock = threading.Lock()
        self._client: ForkClient | None = None
        self._is_closed = False

    @property
    def has_spawned(self) -> bool:
        """Whether the present fork server has forked a child, and so has finished starting."""
        client = self._client
        return client is not None and client.has_forked

    @property
    def fork_server_pid(self) -> int | None:
        client = self._client
        return client.pid if client else None

    def spawn(self) -> ChildProcess:
        """Start a child and wait until it is locked down. Raises SpawnFailed, SystemShortage.

        A fork server found lost is replaced once.
        """
        try:
            client = self._running_client()
            try:
                return self._child_of(client)
            except ForkServerLost:
                self._drop(client)
            return self._child_of(self._running_client())
        except ForkServerLost as error:
            raise SpawnFailed(str(error)) from error
        except OSError as error:
            raise _spawn_failed(error) from error

    def exit_status(self, pid: int) -> int | None:
        """The wait status of a child that has ended, or None if it is unknown."""
        client = self._client
        return client.exit_status(pid) if client else None

    def close(self) -> None:
        """End the fork server, and every child with it; later spawns fail."""
        with self._lock:
            self._is_closed = True
            client, self._client = self._client, None
        if client:
            client.close()

    def forget(self) -> None:
        """Close the inherited descriptors in a forked copy of the worker."""
        if self._client:
            self._client.forget()

    def _child_of(self, client: ForkClient) -> ChildProcess:
        return _when_ready(ChildProcess(*client.fork(), self._waiting))

    def _running_client(self) -> ForkClient:
        with self._lock:
            if self._is_closed:
                raise SpawnFailed("the sandbox is closed")
            if self._client is None:
                self._client = ForkClient()
                self.fork_servers += 1
            return self._client

    def _drop(self, lost: ForkClient) -> None:
        """Its children died with it; the pool notices dead warm ones when it takes them."""
        with self._lock:
            if self._client is lost:
                self._client = None
        lost.close()


def _when_ready(child: ChildProcess) -> ChildProcess:
    """Wait until the child is locked down and ready. Raises SpawnFailed."""
    try:
        frame = child.receive(time.monotonic() + SPAWN_SECONDS)
    except (ChildDied, DeadlinePassed, ProtocolError) as error:
        child.end()
        raise SpawnFailed("a new sandbox process did not get ready") from error
    if not isinstance(frame, Ready):
        child.end()
        reason = frame.reason if isinstance(frame, Refused) else "it sent an unexpected message"
        raise SpawnFailed(f"a new sandbox process refuses to serve: {reason}")
    return child


class ForkServerLost(Exception):
    """The fork server is not running, or no longer answers."""


class ForkClient:
    """One fork server process. Thread-safe: one request at a time."""

    def __init__(self) -> None:
        """Start the process. Raises OSError."""
        self.has_forked = False
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_ANSWER_SECONDS)
        with theirs:
            try:
                # No part of the command comes from outside.
                self._process = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-I", "-c", _START, str(_PROJECT_ROOT), str(theirs.fileno())],
                    env=_ENVIRONMENT,
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                self._control.close()
                raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self) -> tuple[int, socket.socket, int, int]:
        """Fork a child: its pid, socket, pidfd and log file.

        Raises ForkServerLost, or OSError if this process may open no more files or the system
        refuses to fork.
        """
        with self._lock:
            try:
                self._control.send(FORK)
                data, descriptors, _, _ = socket.recv_fds(
                    self._control, NUMBER.size, _DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
                )
            except OSError as error:
                raise ForkServerLost(f"the fork server does not answer: {error}") from error
        if not data:
            raise ForkServerLost("the fork server has ended")
        (pid,) = NUMBER.unpack(data)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        self.has_forked = True
        if len(descriptors) < _DESCRIPTORS:
            # The kernel drops those that it cannot open here. The child sees its socket close.
            for descriptor in descriptors:
                os.close(descriptor)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        channel, pidfd, log_file = descriptors
        return pid, socket.socket(fileno=channel), pidfd, log_file

    def exit_status(self, pid: int) -> int | None:
        """The wait status of a child that has ended, or None if it is unknown."""
        with self._lock:
            try:
                self._control.send(EXIT_STATUS + NUMBER.pack(pid))
                data = self._control.recv(NUMBER.size)
            except OSError:
                # A late answer would be taken for the answer to the next request.
                self._control.close()
                return None
        return int(NUMBER.unpack(data)[0]) if data else None

    def close(self) -> None:
        """End the fork server and with it every child."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """Close the descriptor in a forked copy of the worker; the process is the original's."""
        os.close(self._control.detach())
        # Popen would warn about a process that is not a child of this one.
        self._process.returncode = 0
