"""The exchange of one run between the worker and a child: one request, calls, one answer."""

from __future__ import annotations

import time
from typing import Any

from scripts_engine.sandbox import protocol
from scripts_engine.sandbox.child_process import ChildProcess
from scripts_engine.sandbox.host_call import HostCallError, HostHandler
from scripts_engine.sandbox.limits import Limits
from scripts_engine.sandbox.outcome import HostCall
from scripts_engine.sandbox.protocol import ProtocolError, Tag

# More than any process has, and less than the kernel takes.
MAX_CPU_SECONDS = 1e9


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
        self.cpu_seconds = 0.0

    def send(self, frame: bytes) -> None:
        """Raises ChildDied, when the child cannot have begun, and DeadlinePassed."""
        self._child.log_area.clear()
        self._child.arm_cpu(self._limits.cpu_seconds)
        self._child.send(frame, self._deadline)

    def wait(self) -> list[Any]:
        """Answer calls until the child is done; what it says then.

        Raises ChildDied, DeadlinePassed, ProtocolError, and what the host handler raises.
        """
        while True:
            tag, *fields = self._child.receive(self._deadline)
            if tag == Tag.DONE:
                return self._note_cpu(fields)
            if tag != Tag.CALL or len(fields) != 2:
                raise ProtocolError(f"unexpected frame {tag!r}")
            self._child.send(self._answer_call(*fields), self._deadline)

    def _note_cpu(self, fields: list[Any]) -> list[Any]:
        if not fields or not isinstance(fields[0], float):
            raise ProtocolError("an answer without its CPU time")
        total = fields[0]
        if not self._child.cpu_seconds <= total <= MAX_CPU_SECONDS:
            raise ProtocolError("an answer with an impossible CPU time")
        self.cpu_seconds = total - self._child.cpu_seconds
        self._child.cpu_seconds = total
        return fields[1:]

    def _answer_call(self, name: Any, packed_arguments: Any) -> bytes:
        if not isinstance(name, bytes) or not isinstance(packed_arguments, bytes):
            raise ProtocolError("a call without name or arguments")
        args = protocol.unpack(packed_arguments)
        if not isinstance(args, list):
            raise ProtocolError("the arguments of a call are not a list")
        called = name.decode("ascii", "replace")
        started = time.monotonic()
        try:
            frame = protocol.encode([Tag.VALUE, protocol.pack(self._ask_host(called, args))])
            error = None
        except (HostCallError, protocol.FrameTooLarge) as refusal:
            error = str(refusal)
            frame = protocol.encode([Tag.ERROR, error])
        self.host_calls.append(
            HostCall(
                name=called,
                offset_seconds=started - self.started,
                duration_seconds=time.monotonic() - started,
                error=error,
            )
        )
        return frame

    def _ask_host(self, name: str, args: list[Any]) -> Any:
        if self._host is None:
            raise HostCallError(f"{name.partition('.')[0]} is not available here")
        if len(self.host_calls) >= self._limits.host_calls:
            raise HostCallError(
                f"{name}: more than {self._limits.host_calls:,} host calls in a run"
            )
        return self._host(name, args, deadline=self._deadline)
