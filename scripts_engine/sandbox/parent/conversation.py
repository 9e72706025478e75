"""The exchange of one run between the worker and a child: one request, calls, one answer."""

from __future__ import annotations

import math
import time
from typing import Any

from scripts_engine.sandbox import protocol
from scripts_engine.sandbox.contract import HostCall, HostCallError, HostHandler
from scripts_engine.sandbox.limits import (
    MAX_HOST_CALL_ERROR_CHARS,
    MAX_REFUSED_HOST_CALLS,
    Limits,
)
from scripts_engine.sandbox.parent.child_frames import Call, Done, Frame
from scripts_engine.sandbox.parent.child_process import ChildProcess, DeadlinePassed
from scripts_engine.sandbox.protocol import ProtocolError, Tag

# A run that has used so much CPU time gives way to those that have not: a loop without end would
# else hold up every quick script, for seconds.
LONG_RUN_CPU_SECONDS = 0.02


class TooManyHostCalls(Exception):
    """The script went on with host calls that the limit refused."""


class Conversation:
    """Starts the clock of the run when it is made."""

    def __init__(self, child: ChildProcess, limits: Limits, host: HostHandler | None) -> None:
        self._child = child
        self._limits = limits
        self._host = host
        self.started_at = time.time()
        self.started = time.monotonic()
        self._deadline = self.started + limits.wall_seconds
        self.host_calls: list[HostCall] = []
        """The first ones, up to the limit."""
        self._calls = 0
        self.cpu_seconds = 0.0
        # A new process has used some already.
        self._cpu_seconds_before = child.most_cpu_seconds()

    def send(self, frame: bytes) -> None:
        """Raises ChildDied, when the child cannot have begun, and DeadlinePassed."""
        self._child.log_area.clear()
        self._child.arm_cpu(self._limits.cpu_seconds)
        self._child.send(frame, self._deadline)

    def wait(self) -> list[Any]:
        """Answer calls until the child is done; what it says then.

        Raises ChildDied, DeadlinePassed, ProtocolError, TooManyHostCalls, and what the host
        handler raises.
        """
        while True:
            frame = self._receive()
            if isinstance(frame, Done):
                return self._answer_of(frame)
            if not isinstance(frame, Call):
                raise ProtocolError("an unexpected frame")
            self._child.send(self._answer_call(frame), self._deadline)

    def _receive(self) -> Frame:
        """The next message. Looks now and then at how long a run goes on that says nothing."""
        while not self._child.has_lowest_priority:
            looks_at = time.monotonic() + LONG_RUN_CPU_SECONDS
            if looks_at >= self._deadline:
                break
            try:
                return self._child.receive(looks_at)
            except DeadlinePassed:
                self._give_way_if_long()
        return self._child.receive(self._deadline)

    def _give_way_if_long(self) -> None:
        if self._child.has_lowest_priority:
            return
        used = self._child.most_cpu_seconds() - self._cpu_seconds_before
        # Not a number where it is not to be had.
        if used >= LONG_RUN_CPU_SECONDS and math.isfinite(used):
            self._child.take_lowest_priority()

    def _answer_of(self, done: Done) -> list[Any]:
        # The next run's CPU limit is counted from what the process says.
        most = self._child.most_cpu_seconds()
        if not self._child.cpu_seconds <= done.cpu_seconds <= most:
            raise ProtocolError("an answer with an impossible CPU time")
        if self._child.has_more_to_say():
            # It would pass for the answer to the next run.
            raise ProtocolError("something behind the answer")
        self.cpu_seconds = done.cpu_seconds - self._child.cpu_seconds
        self._child.cpu_seconds = done.cpu_seconds
        return done.answer

    def _answer_call(self, call: Call) -> bytes:
        self._calls += 1
        self._give_way_if_long()
        started = time.monotonic()
        try:
            frame = protocol.encode([Tag.VALUE, protocol.pack(self._ask_host(call))])
            error = None
        except (HostCallError, protocol.FrameTooLarge) as refusal:
            error = str(refusal)[:MAX_HOST_CALL_ERROR_CHARS]
            frame = protocol.encode([Tag.ERROR, error.encode("utf-8", "replace")])
        if self._calls <= self._limits.host_calls:
            self.host_calls.append(
                HostCall(
                    name=call.name,
                    offset_seconds=started - self.started,
                    duration_seconds=time.monotonic() - started,
                    error=error,
                )
            )
        return frame

    def _ask_host(self, call: Call) -> Any:
        most = self._limits.host_calls
        if self._calls > most + MAX_REFUSED_HOST_CALLS:
            raise TooManyHostCalls
        if self._calls > most:
            raise HostCallError(f"{call.name}: more than {most:,} host calls in a run")
        arguments = call.arguments()
        if self._host is None:
            raise HostCallError(f"{call.name.partition('.')[0]} is not available here")
        return self._host(call.name, arguments, deadline=self._deadline)
