"""From the way in which a run ended to its kind and error. Messages name the limit and figure."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any, NamedTuple

from scripts_engine.sandbox.contract import OutcomeKind, Reply, ScriptError
from scripts_engine.sandbox.limits import (
    MAX_MESSAGE_BYTES,
    MAX_TRACEBACK_BYTES,
    Limits,
    figure_in_words,
)
from scripts_engine.sandbox.parent import child_frames
from scripts_engine.sandbox.protocol import EXIT_OUT_OF_MEMORY, ProtocolError
from scripts_engine.sandbox.reply_headers import checked_headers

# RFC 9110. The prelude drops the body of a reply with one of them.
STATUSES_WITHOUT_BODY = frozenset({204, 205, 304})


class Ending(NamedTuple):
    kind: OutcomeKind
    reply: Reply | None = None
    error: ScriptError | None = None


def of_run(answer: Sequence[Any], limits: Limits, source: bytes = b"") -> Ending:
    """What the child said of a run of the source. Raises ProtocolError when it makes no sense."""
    kind, *values = answer or (None,)
    match child_frames.text(kind, MAX_MESSAGE_BYTES):
        case OutcomeKind.SUCCEEDED:
            return Ending(OutcomeKind.SUCCEEDED, reply=_reply(values, limits))
        case OutcomeKind.FAILED:
            return Ending(OutcomeKind.FAILED, error=_script_error(values, source))
        case OutcomeKind.OUT_OF_MEMORY if not values:
            return out_of_memory(limits)
        case OutcomeKind.REPLY_TOO_LARGE if not values:
            figure = figure_in_words(limits.reply_bytes)
            return Ending(
                OutcomeKind.REPLY_TOO_LARGE, error=ScriptError(f"reply too large: {figure} limit")
            )
    raise ProtocolError("an unknown kind of outcome")


def of_syntax_check(answer: Sequence[Any], source: bytes) -> Ending:
    """What the child said of a source: None, or an error. Raises ProtocolError."""
    if list(answer) == [None]:
        return Ending(OutcomeKind.SUCCEEDED)
    return Ending(OutcomeKind.FAILED, error=_script_error(answer, source))


def failed(message: str) -> Ending:
    return Ending(OutcomeKind.FAILED, error=ScriptError(message))


def too_many_host_calls(limits: Limits) -> Ending:
    return failed(f"more than {limits.host_calls:,} host calls in a run")


def out_of_memory(limits: Limits) -> Ending:
    figure = figure_in_words(limits.lua_memory_bytes)
    message = f"out of memory: {figure} Lua memory limit"
    return Ending(OutcomeKind.OUT_OF_MEMORY, error=ScriptError(message))


def out_of_wall_time(limits: Limits, line: int | None) -> Ending:
    where = f" (line {line})" if line else ""
    message = f"ran out of time: {limits.wall_seconds:g} s wall limit{where}"
    return Ending(OutcomeKind.TIMED_OUT, error=ScriptError(message, line))


def out_of_cpu_time(limits: Limits, line: int | None) -> Ending:
    where = f" (line {line})" if line else ""
    message = f"ran out of time: {limits.cpu_seconds} s CPU limit{where}"
    return Ending(OutcomeKind.TIMED_OUT, error=ScriptError(message, line))


def from_exit_status(status: int | None, limits: Limits, line: int | None) -> Ending:
    """The process ended by itself, or by the kernel's hand. `status` as of waitpid, if known."""
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        return out_of_cpu_time(limits, line)
    if code == EXIT_OUT_OF_MEMORY:
        error = ScriptError("out of memory: process memory limit")
        return Ending(OutcomeKind.OUT_OF_MEMORY, error=error)
    if code >= 0:
        return failed("the sandbox process ended before it answered")
    if code == -signal.SIGKILL:
        return failed("the sandbox process was ended from outside")
    if code == -signal.SIGSYS:
        return failed("stopped by the sandbox: a forbidden system call")
    return failed(f"the sandbox process crashed ({_signal_name(-code)})")


def _signal_name(number: int) -> str:
    """Real-time signals have numbers only."""
    known = {each.value: each.name for each in signal.Signals}
    return known.get(number, f"signal {number}")


def _script_error(values: Sequence[Any], source: bytes) -> ScriptError:
    """Message, line or None, traceback."""
    message, line, traceback = values if len(values) == 3 else (None, None, None)
    return ScriptError(
        child_frames.text(message, MAX_MESSAGE_BYTES),
        child_frames.line(line, source),
        child_frames.text(traceback, MAX_TRACEBACK_BYTES),
    )


def _reply(values: Sequence[Any], limits: Limits) -> Reply:
    if len(values) < 2:
        raise ProtocolError("a reply without a body")
    status, body, *flat = values
    if type(status) is not int or not 200 <= status <= 599:
        raise ProtocolError("a reply with an impossible status")
    if not isinstance(body, bytes) or len(body) > limits.reply_bytes:
        raise ProtocolError("a reply with an impossible body")
    if body and status in STATUSES_WITHOUT_BODY:
        # On a connection that is used again it would pass for the next reply.
        raise ProtocolError("a reply with a body that its status forbids")
    return Reply(status, checked_headers(flat), body)
