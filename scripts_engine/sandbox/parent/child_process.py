"""One child as the worker sees it: send and receive frames, bound its CPU time, kill it.

Role in a run: `conversation` exchanges frames with the child through it.
"""

from __future__ import annotations

import math
import os
import resource
import select
import signal
import socket
import time
from contextlib import suppress

from scripts_engine.sandbox.log_area import LogArea
from scripts_engine.sandbox.parent import child_frames
from scripts_engine.sandbox.parent.child_frames import Frame
from scripts_engine.sandbox.parent.waiting import Waiting
from scripts_engine.sandbox.protocol import FROM_CHILD, FrameReader

# CPUCLOCK_SCHED of the kernel: user and system time.
_PROCESS_CPU_CLOCK = 2
# The longest tick that Linux is built with: 100 per second.
_TICK_SECONDS = 0.01
LOWEST_PRIORITY = 19


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
