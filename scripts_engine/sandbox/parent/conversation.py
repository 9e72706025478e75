"""The exchange of one run with a child: one request, host calls, one answer or a kill.

Role in a run: starts when the pool has a child for the run; the pool waits until the run has ended.
Messages of an ending name the limit and its figure.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from scripts_engine.sandbox import protocol
from scripts_engine.sandbox.contract import (
    CallNote,
    GlobalUse,
    HostCall,
    HostCallError,
    HostHandler,
    Job,
    Library,
    OutcomeKind,
    ScriptError,
)
from scripts_engine.sandbox.limits import (
    MAX_HOST_CALL_ERROR_CHARS,
    MAX_REFUSED_HOST_CALLS,
    PROCESS_MEMORY_BYTES,
    Limits,
    figure_in_words,
)
from scripts_engine.sandbox.parent import child_frames
from scripts_engine.sandbox.parent.child_frames import Call, Done, Ending, Frame, Need
from scripts_engine.sandbox.parent.child_process import ChildDied, ChildProcess, DeadlinePassed
from scripts_engine.sandbox.parent.waiting import KillReason
from scripts_engine.sandbox.protocol import EXIT_OUT_OF_MEMORY, ProtocolError, Tag

# A run that has used this much CPU time gets the lowest priority; an endless loop would otherwise
# delay every quick script for seconds.
LONG_RUN_CPU_SECONDS = 0.02
SYNTAX_CHECK_LIMITS = Limits(wall_seconds=2.0, cpu_seconds=2)


class Request(NamedTuple):
    """A request to a child: the frame to send, its limits, how to read its answer."""

    frame: bytes
    source: bytes
    limits: Limits
    trace_lines: bool
    read_answer: Callable[[Sequence[Any]], Ending]
    libraries: Mapping[bytes, Library] = MappingProxyType({})
    """By key."""

    @classmethod
    def to_run(cls, job: Job) -> Self:
        message = [
            Tag.RUN,
            job.source,
            _chunk_name(job.chunk_name),
            job.libraries.packed_requires,
            dict(job.params),
            job.headers,
            job.limits.as_run_arguments(),
            job.trace_lines,
        ]
        read_answer = partial(child_frames.ending_of_run, limits=job.limits, source=job.source)
        return cls(
            protocol.encode(message),
            job.source,
            job.limits,
            job.trace_lines,
            read_answer,
            job.libraries.by_key,
        )

    @classmethod
    def to_check_syntax(cls, source: bytes, chunk_name: str) -> Self:
        message = [Tag.CHECK, source, _chunk_name(chunk_name)]
        read_answer = partial(child_frames.ending_of_syntax_check, source=source)
        return cls(protocol.encode(message), source, SYNTAX_CHECK_LIMITS, False, read_answer)

    @classmethod
    def to_list_globals(
        cls, source: bytes, receive: Callable[[tuple[GlobalUse, ...]], object]
    ) -> Self:
        """`receive` gets the uses, if the child answers."""

        def read_answer(answer: Sequence[Any]) -> Ending:
            receive(child_frames.uses_in_listing(answer, source))
            return Ending(OutcomeKind.SUCCEEDED)

        frame = protocol.encode([Tag.LIST, source])
        return cls(frame, source, SYNTAX_CHECK_LIMITS, False, read_answer)

    @classmethod
    def to_count_runs(cls, receive: Callable[[int], object]) -> Self:
        """`receive` gets the number of runs that the child's Lua state has served."""

        def read_answer(answer: Sequence[Any]) -> Ending:
            if len(answer) != 1 or type(answer[0]) is not int:
                raise ProtocolError("a number of runs is missing")
            receive(answer[0])
            return Ending(OutcomeKind.SUCCEEDED)

        return cls(protocol.encode([Tag.COUNT]), b"", SYNTAX_CHECK_LIMITS, False, read_answer)


@lru_cache(maxsize=256)
def _chunk_name(name: str) -> bytes:
    """The name on one line, since Lua prints it in front of every message."""
    return " ".join(name.split()).encode() or b"script"


class TooManyHostCalls(Exception):
    """The script went on making host calls after the limit refused them."""


class Conversation:
    """One request to one child. Creating it starts the run's clock."""

    def __init__(self, child: ChildProcess, request: Request, host: HostHandler | None) -> None:
        self.child = child
        self._request = request
        self._limits = request.limits
        self._host = host
        self.started_at = time.time()
        self.started = time.monotonic()
        self._deadline = self.started + request.limits.wall_seconds
        self.host_calls: list[HostCall] = []
        """The first ones, up to the limit."""
        self._calls = 0
        self._sent_libraries: set[bytes] = set()
        self.cpu_seconds = 0.0
        # The process has used CPU time before, if only to start.
        self._cpu_seconds_before = child.most_cpu_seconds()

    def send(self) -> None:
        """Send the request. Raises ChildDied and DeadlinePassed: the run has not begun then."""
        self.child.log_area.clear()
        self.child.arm_cpu(self._limits.cpu_seconds)
        self.child.send(self._request.frame, self._deadline)

    def wait(self, exit_status: Callable[[int], int | None]) -> Ending:
        """Answer host calls until the run ends. Raises what the host handler raises.

        An ending with a `kill_reason` means that the child must not be used again.
        `exit_status` returns the wait status of a child that has ended.
        """
        try:
            return self._request.read_answer(self._answer())
        except DeadlinePassed:
            self.cpu_seconds = self._cpu_seconds_used()
            self.child.kill()
            return _out_of_wall_time(self._limits, self._traced_line())
        except ChildDied:
            # A child that only closed its socket must end before its status is asked for.
            self.child.kill()
            status = self.child.waiting.in_thread(partial(exit_status, self.child.pid))
            ending = ending_from_exit_status(status, self._limits, self._traced_line())
            if ending.kind is OutcomeKind.TIMED_OUT:
                self.cpu_seconds = float(self._limits.cpu_seconds)
            return ending
        except TooManyHostCalls:
            return _too_many_host_calls(self._limits)
        except ProtocolError as error:
            return _broken_protocol(error)

    def _answer(self) -> list[Any]:
        """The child's answer, after its host calls and the libraries that it needs.

        Raises ChildDied, DeadlinePassed, ProtocolError, TooManyHostCalls, and what the host
        handler raises.
        """
        while True:
            frame = self._receive()
            if isinstance(frame, Done):
                return self._answer_of(frame)
            if isinstance(frame, Call):
                answer = self._answer_call(frame)
            elif isinstance(frame, Need):
                answer = self._library(frame.key)
            else:
                raise ProtocolError("an unexpected frame")
            self.child.send(answer, self._deadline)

    def _receive(self) -> Frame:
        """The next message. While the child is silent, lower its priority once the run is long."""
        while not self.child.has_lowest_priority:
            check_at = time.monotonic() + LONG_RUN_CPU_SECONDS
            if check_at >= self._deadline:
                break
            try:
                return self.child.receive(check_at)
            except DeadlinePassed:
                self._lower_priority_if_long()
        return self.child.receive(self._deadline)

    def _lower_priority_if_long(self) -> None:
        if self.child.has_lowest_priority:
            return
        if self._cpu_seconds_used() >= LONG_RUN_CPU_SECONDS:
            self.child.take_lowest_priority()

    def _cpu_seconds_used(self) -> float:
        """Of the run so far; 0 if the clock of the process cannot be read."""
        used = self.child.most_cpu_seconds() - self._cpu_seconds_before
        return used if math.isfinite(used) else 0.0

    def _answer_of(self, done: Done) -> list[Any]:
        # The next run's CPU limit is counted from this figure, so a child must not invent it.
        most = self.child.most_cpu_seconds()
        if not self.child.cpu_seconds <= done.cpu_seconds <= most:
            raise ProtocolError("an answer with an impossible CPU time")
        if self.child.has_more_to_say():
            # The rest would pass for the answer to the next run.
            raise ProtocolError("something behind the answer")
        self.cpu_seconds = done.cpu_seconds - self.child.cpu_seconds
        self.child.cpu_seconds = done.cpu_seconds
        return done.answer

    def _library(self, key: bytes) -> bytes:
        """The frame that answers a need. A child keeps the library, so it needs each once."""
        library = self._request.libraries.get(key)
        if library is None or key in self._sent_libraries:
            raise ProtocolError("a library that the script does not need")
        self._sent_libraries.add(key)
        packed = protocol.pack_library(_chunk_name(library.chunk_name), library)
        return protocol.encode([Tag.VALUE, packed])

    def _answer_call(self, call: Call) -> bytes:
        self._calls += 1
        self._lower_priority_if_long()
        started = time.monotonic()
        note = CallNote()
        error: str | None = None
        hint = ""
        try:
            answer = protocol.pack(self._ask_host(call, note))
            frame = protocol.encode([Tag.VALUE, answer])
        except HostCallError as refusal:
            error, hint = str(refusal)[:MAX_HOST_CALL_ERROR_CHARS], refusal.hint
        except protocol.FrameTooLarge as refusal:
            error = f"{call.name}: {refusal}"
        if error is not None:
            frame = protocol.encode([Tag.ERROR, error.encode("utf-8", "replace")])
        if self._calls <= self._limits.host_calls:
            self.host_calls.append(
                HostCall(
                    name=call.name,
                    offset_seconds=started - self.started,
                    duration_seconds=time.monotonic() - started,
                    error=error,
                    hint=hint,
                    subject=note.subject,
                    result=note.result if error is None else "",
                )
            )
        return frame

    def _ask_host(self, call: Call, note: CallNote) -> Any:
        most = self._limits.host_calls
        if self._calls > most + MAX_REFUSED_HOST_CALLS:
            raise TooManyHostCalls
        if self._calls > most:
            raise HostCallError(f"{call.name}: more than {most:,} host calls in a run")
        arguments = call.arguments()
        if self._host is None:
            library = call.name.partition(".")[0]
            raise HostCallError(f"{call.name}: {library} is not available here")
        ask = partial(self._host, call.name, arguments, deadline=self._deadline, note=note)
        return self.child.waiting.in_thread(ask)

    def _traced_line(self) -> int | None:
        if not self._request.trace_lines:
            return None
        return child_frames.checked_line(self.child.log_area.current_line(), self._request.source)


def _out_of_wall_time(limits: Limits, line: int | None) -> Ending:
    limit = f"{limits.wall_seconds:g} s wall limit"
    return _out_of_time(limit, line, KillReason.WALL_TIME)


def _too_many_host_calls(limits: Limits) -> Ending:
    message = f"more than {limits.host_calls:,} host calls in a run"
    return _failed(message, KillReason.HOST_CALLS)


def _broken_protocol(error: ProtocolError) -> Ending:
    return _failed(f"the sandbox process broke the protocol: {error}", KillReason.PROTOCOL)


def ending_from_exit_status(status: int | None, limits: Limits, line: int | None) -> Ending:
    """The ending of a child that died. `status` is that of waitpid, or None if it is unknown."""
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        return _out_of_time(f"{limits.cpu_seconds} s CPU limit", line, KillReason.CPU_TIME)
    if code == EXIT_OUT_OF_MEMORY:
        figure = figure_in_words(PROCESS_MEMORY_BYTES)
        error = ScriptError(f"The process of the script used more than {figure} of memory")
        return Ending(OutcomeKind.OUT_OF_MEMORY, error=error, kill_reason=KillReason.MEMORY)
    if code >= 0:
        message = "the sandbox process ended before it answered"
    elif code == -signal.SIGKILL:
        message = "the sandbox process was ended from outside"
    elif code == -signal.SIGSYS:
        message = "stopped by the sandbox: a forbidden system call"
    else:
        message = f"the sandbox process crashed ({_signal_name(-code)})"
    return _failed(message, KillReason.CRASHED)


def _failed(message: str, kill_reason: KillReason) -> Ending:
    return Ending(OutcomeKind.FAILED, error=ScriptError(message), kill_reason=kill_reason)


def _out_of_time(limit: str, line: int | None, kill_reason: KillReason) -> Ending:
    where = f" (line {line})" if line else ""
    error = ScriptError(f"ran out of time: {limit}{where}", line)
    return Ending(OutcomeKind.TIMED_OUT, error=error, kill_reason=kill_reason)


def _signal_name(number: int) -> str:
    """The name, or the number for real-time signals, which have no name."""
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")
