"""Turns the way a run ended into its kind, reply or error. Messages name the limit and its figure.

Role in a run: the last step in the parent, called by `conversation`.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from typing import Any, NamedTuple

from scripts_engine.sandbox.contract import (
    Fail,
    GlobalUse,
    GlobalUseKind,
    OutcomeKind,
    Reply,
    Retry,
    ScriptError,
)
from scripts_engine.sandbox.limits import (
    MAX_LISTED_GLOBALS,
    MAX_LISTED_NAME_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_RETRY_SECONDS,
    MAX_TRACEBACK_BYTES,
    PROCESS_MEMORY_BYTES,
    Limits,
    figure_in_words,
    size_over_limit_in_words,
)
from scripts_engine.sandbox.parent import child_frames
from scripts_engine.sandbox.parent.observer import KillReason
from scripts_engine.sandbox.protocol import EXIT_OUT_OF_MEMORY, ProtocolError
from scripts_engine.sandbox.reply_headers import checked_headers

# RFC 9110. The prelude drops the body of such a reply.
STATUSES_WITHOUT_BODY = frozenset({204, 205, 304})

# Kind, name, line and suggestion.
_USE_FIELDS = 4
_USE_KINDS = {kind.value.encode(): kind for kind in GlobalUseKind}
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")


class Ending(NamedTuple):
    kind: OutcomeKind
    reply: Reply | None = None
    error: ScriptError | None = None
    kill_reason: KillReason | None = None
    """Why the child must not be used again; None if it may."""
    verdict: Retry | Fail | None = None


def of_run(answer: Sequence[Any], limits: Limits, source: bytes = b"") -> Ending:
    """The ending that a child reports of a run. Raises ProtocolError if the answer is invalid."""
    kind, *values = answer or (None,)
    match child_frames.text(kind, MAX_MESSAGE_BYTES):
        case OutcomeKind.SUCCEEDED:
            return Ending(OutcomeKind.SUCCEEDED, reply=_reply(values, limits))
        case OutcomeKind.FAILED:
            return Ending(OutcomeKind.FAILED, error=_script_error(values, source))
        case OutcomeKind.OUT_OF_MEMORY if not values:
            return out_of_memory(limits)
        case OutcomeKind.REPLY_TOO_LARGE if len(values) == 1:
            return _reply_too_large(values[0], limits)
        case "retry" if len(values) == 2:
            return _retry(*values)
        case "fail" if len(values) == 1:
            reason = child_frames.text(values[0], MAX_MESSAGE_BYTES)
            return _by_verdict(Fail(reason), "The script returned Fail without a reason")
    raise ProtocolError("an unknown kind of outcome")


def of_syntax_check(answer: Sequence[Any], source: bytes) -> Ending:
    """The ending of a syntax check, from None or an error. Raises ProtocolError."""
    if list(answer) == [None]:
        return Ending(OutcomeKind.SUCCEEDED)
    return Ending(OutcomeKind.FAILED, error=_script_error(answer, source))


def of_listing(answer: Sequence[Any], source: bytes) -> tuple[GlobalUse, ...]:
    """The uses of globals in the answer to a listing. Raises ProtocolError."""
    if len(answer) % _USE_FIELDS or len(answer) > _USE_FIELDS * MAX_LISTED_GLOBALS:
        raise ProtocolError("an impossible number of globals")
    starts = range(0, len(answer), _USE_FIELDS)
    lines = child_frames.lines_of(source) if answer else 0
    return tuple(_global_use(*answer[at : at + _USE_FIELDS], lines=lines) for at in starts)


def _global_use(kind: Any, name: Any, line: Any, suggestion: Any, *, lines: int) -> GlobalUse:
    number = child_frames.line_among(line, lines)
    known = _USE_KINDS.get(kind) if isinstance(kind, bytes) else None
    if number is None or known is None:
        raise ProtocolError("an impossible use of a global")
    meant = _name(suggestion) if suggestion != b"" else ""
    return GlobalUse(known, _name(name), number, meant)


def _name(value: Any) -> str:
    if (
        not isinstance(value, bytes)
        or len(value) > MAX_LISTED_NAME_BYTES
        or not _NAME.fullmatch(value)
    ):
        raise ProtocolError("an impossible name of a global")
    return value.decode()


def out_of_memory(limits: Limits) -> Ending:
    figure = figure_in_words(limits.lua_memory_bytes)
    message = f"The script used more than {figure} of memory"
    return Ending(OutcomeKind.OUT_OF_MEMORY, error=ScriptError(message))


def out_of_wall_time(limits: Limits, line: int | None) -> Ending:
    limit = f"{limits.wall_seconds:g} s wall limit"
    return _out_of_time(limit, line, KillReason.WALL_TIME)


def too_many_host_calls(limits: Limits) -> Ending:
    message = f"more than {limits.host_calls:,} host calls in a run"
    return _failed(message, KillReason.HOST_CALLS)


def broken_protocol(error: ProtocolError) -> Ending:
    return _failed(f"the sandbox process broke the protocol: {error}", KillReason.PROTOCOL)


def from_exit_status(status: int | None, limits: Limits, line: int | None) -> Ending:
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


def _reply_too_large(size_bytes: object, limits: Limits) -> Ending:
    """`size_bytes` is what the child counted, or None. Raises ProtocolError if that cannot be."""
    limit = figure_in_words(limits.reply_bytes)
    if size_bytes is None:
        message = f"The reply is larger than the limit of {limit}"
    elif type(size_bytes) is int and limits.reply_bytes < size_bytes <= PROCESS_MEMORY_BYTES:
        size = size_over_limit_in_words(size_bytes, limits.reply_bytes)
        message = f"The reply has {size}; the limit is {limit}"
    else:
        raise ProtocolError("a reply with an impossible size")
    return Ending(OutcomeKind.REPLY_TOO_LARGE, error=ScriptError(message))


def _retry(reason: Any, after_seconds: Any) -> Ending:
    if after_seconds is not None and (
        type(after_seconds) not in {int, float}
        # NaN fails the comparison too.
        or not 0 <= after_seconds <= MAX_RETRY_SECONDS
    ):
        raise ProtocolError("a retry after an impossible time")
    verdict = Retry(
        None if after_seconds is None else float(after_seconds),
        child_frames.text(reason, MAX_MESSAGE_BYTES),
    )
    return _by_verdict(verdict, "The script returned Retry without a reason")


def _by_verdict(verdict: Retry | Fail, without_reason: str) -> Ending:
    error = ScriptError(verdict.reason or without_reason)
    return Ending(OutcomeKind.FAILED, error=error, verdict=verdict)


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


def _script_error(values: Sequence[Any], source: bytes) -> ScriptError:
    """The error in a message, a line or None, and a traceback. Raises ProtocolError."""
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
        # On a kept-alive connection the client would take the body for the next reply.
        raise ProtocolError("a reply with a body that its status forbids")
    return Reply(status, checked_headers(flat), body)
