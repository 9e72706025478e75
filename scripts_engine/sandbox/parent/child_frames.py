"""Checks what a child sends and turns it into values that the worker may use.

Role in a run: every message from the child passes through here: its frames, and the answer in the
last one, which becomes the `Ending` of the run. A script may have taken over the child, so the
type, range and length of each field are checked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from scripts_engine.sandbox.contract import (
    HOST_CALLS,
    STATUSES_WITHOUT_BODY,
    Fail,
    GlobalUse,
    GlobalUseKind,
    HostCallError,
    OutcomeKind,
    Reply,
    Retry,
    ScriptError,
)
from scripts_engine.sandbox.limits import (
    MAX_ANSWER_FIELDS,
    MAX_ARGUMENT_DEPTH,
    MAX_ARGUMENT_VALUES,
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_LIBRARY_KEY_BYTES,
    MAX_LISTED_GLOBALS,
    MAX_LISTED_NAME_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_RETRY_SECONDS,
    MAX_TRACEBACK_BYTES,
    PROCESS_MEMORY_BYTES,
    Limits,
    figure_in_words,
    is_reserved,
    size_over_limit_in_words,
)
from scripts_engine.sandbox.parent.waiting import KillReason
from scripts_engine.sandbox.protocol import ProtocolError, Tag, unpack

# More than any process uses, and less than the largest limit that the kernel accepts.
MAX_CPU_SECONDS = 1e9
# No list in arguments is longer. The limit is needed since msgpack allocates a list's announced
# length before it reads the values.
_MAX_LIST = 16
_LINE_END = re.compile(rb"\r\n|\n\r|\n|\r")
# A message up to this size cannot unpack into many values, so it is not counted.
_SMALL_BYTES = 4096

# Kind, name, line and suggestion.
_USE_FIELDS = 4
_USE_KINDS = {kind.value.encode(): kind for kind in GlobalUseKind}
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")

# A name is a token (RFC 9110, 5.1); a value has no control character but the tab.
_HEADER_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN_IN_VALUES = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
# The Content-Type that the prelude may add.
_DEFAULT_HEADERS = 1
_DEFAULT_HEADER_BYTES = len("Content-Type" + "text/plain; charset=utf-8")


class Ready(NamedTuple):
    """The child is locked down and accepts runs."""


class Refused(NamedTuple):
    """The child cannot serve."""

    reason: str


class Call(NamedTuple):
    """A host call."""

    name: str
    """One of HOST_CALLS."""
    packed_arguments: bytes

    def arguments(self) -> list[Any]:
        """Unpack the arguments. Raises ProtocolError, or HostCallError if they are too many."""
        if _unfolds_too_far(self.packed_arguments, MAX_ARGUMENT_VALUES, MAX_ARGUMENT_DEPTH):
            raise HostCallError(
                f"{self.name}: the arguments hold more than {MAX_ARGUMENT_VALUES:,} values"
                f" or {MAX_ARGUMENT_DEPTH} levels"
            )
        arguments = unpack(self.packed_arguments, max_array_len=_MAX_LIST)
        if not isinstance(arguments, list):
            raise ProtocolError("the arguments of a call are not a list")
        return arguments


class Need(NamedTuple):
    """The script requires a library that the child has not compiled."""

    key: bytes


class Done(NamedTuple):
    """The answer to a run or a syntax check."""

    cpu_seconds: float
    """CPU time of the process since its start."""
    answer: list[Any]
    """Not checked yet; `ending_of_run` and its like do."""


Frame = Ready | Refused | Call | Need | Done


def read(payload: memoryview) -> Frame:
    """Read and check the frame in a payload. Raises ProtocolError."""
    if _unfolds_too_far(payload, MAX_ANSWER_FIELDS, max_depth=1):
        raise ProtocolError("a frame of too many values")
    tag, *fields = unpack(payload, max_array_len=MAX_ANSWER_FIELDS, max_map_len=0)
    if tag == Tag.DONE:
        return _done(fields)
    if tag == Tag.CALL:
        return _call(fields)
    if tag == Tag.NEED and len(fields) == 1:
        return _need(fields[0])
    if tag == Tag.READY and not fields:
        return Ready()
    if tag == Tag.REFUSED and len(fields) == 1:
        return Refused(decode(fields[0], MAX_MESSAGE_BYTES))
    raise ProtocolError("a frame that makes no sense")


def decode(value: Any, max_bytes: int) -> str:
    """Decode the first `max_bytes` of a bytes value. Raises ProtocolError for other types."""
    if not isinstance(value, bytes):
        raise ProtocolError("a text is missing")
    return value[:max_bytes].decode("utf-8", "replace")


def checked_line(value: Any, source: bytes) -> int | None:
    """The number of a line of the source, or None for any other number. Raises ProtocolError.

    A script may choose the number, by raising an error that looks like one of Lua's own.
    """
    return None if value is None else line_among(value, count_lines(source))


def line_among(value: Any, lines: int) -> int | None:
    """`checked_line`, for several numbers of one source, whose lines are counted once."""
    if value is None:
        return None
    if type(value) is not int:
        raise ProtocolError("a line that is not a number")
    return value if 1 <= value <= lines else None


def _done(fields: list[Any]) -> Done:
    cpu_seconds, *answer = fields or (None,)
    # NaN fails the comparison too.
    if type(cpu_seconds) is not float or not 0 <= cpu_seconds <= MAX_CPU_SECONDS:
        raise ProtocolError("an answer with an impossible CPU time")
    return Done(cpu_seconds, answer)


def _call(fields: list[Any]) -> Call:
    name, packed_arguments = fields if len(fields) == 2 else (None, None)
    known = HOST_CALLS.get(name) if isinstance(name, bytes) else None
    if known is None or not isinstance(packed_arguments, bytes):
        raise ProtocolError("a call without a known name, or without arguments")
    return Call(known, packed_arguments)


def _need(key: Any) -> Need:
    if not isinstance(key, bytes) or len(key) > MAX_LIBRARY_KEY_BYTES:
        raise ProtocolError("an impossible key of a library")
    return Need(key)


def count_lines(source: bytes) -> int:
    """The number of lines, as Lua counts them."""
    return 1 + len(_LINE_END.findall(source))


def _unfolds_too_far(packed: bytes | memoryview, max_values: int, max_depth: int) -> bool:
    """Whether msgpack data announces too many values, or lists and maps too deep.

    Counted before unpacking, since a few bytes can announce millions of objects. Other errors in
    the data are left for `unpack` to find.
    """
    size = len(packed)
    if size <= _SMALL_BYTES:
        return False
    position, values = 0, 1
    # The number of values still to come in each open list or map.
    open_lists = [1]
    while open_lists and position < size:
        if not open_lists[-1]:
            open_lists.pop()
            continue
        open_lists[-1] -= 1
        length_bytes, length, bytes_each, values_each = _SHAPES[packed[position]]
        position += 1
        if length_bytes:
            length = int.from_bytes(packed[position : position + length_bytes], "big")
            position += length_bytes
        position += length * bytes_each
        if values_each:
            values += length * values_each
            open_lists.append(length * values_each)
            if values > max_values or len(open_lists) - 1 > max_depth:
                return True
    return False


def _shape_of(first: int) -> tuple[int, int, int, int]:
    """The shape of a msgpack value that starts with this byte.

    Four numbers: the bytes that hold its length, the length itself if they are none, and the
    bytes and the values that follow for each unit of the length.
    """
    if first < 0x80 or first >= 0xE0:
        return 0, 0, 0, 0
    if first < 0x90:
        return 0, first - 0x80, 0, 2
    if first < 0xA0:
        return 0, first - 0x90, 0, 1
    if first < 0xC0:
        return 0, first - 0xA0, 1, 0
    return _LONG_SHAPES.get(first, (0, 0, 0, 0))


_LONG_SHAPES = {
    **{first: (size, 0, 1, 0) for first, size in {0xC4: 1, 0xC5: 2, 0xC6: 4}.items()},
    **{first: (size, 0, 1, 0) for first, size in {0xD9: 1, 0xDA: 2, 0xDB: 4}.items()},
    **{first: (size, 0, 0, 1) for first, size in {0xDC: 2, 0xDD: 4}.items()},
    **{first: (size, 0, 0, 2) for first, size in {0xDE: 2, 0xDF: 4}.items()},
    **{first: (0, size, 1, 0) for first, size in {0xCA: 4, 0xCB: 8}.items()},
    **{first: (0, size, 1, 0) for first, size in {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}.items()},
    **{first: (0, size, 1, 0) for first, size in {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}.items()},
    # A child never sends extensions, so they count as too many values.
    **dict.fromkeys((0xC1, *range(0xC7, 0xCA), *range(0xD4, 0xD9)), (0, 2**32, 0, 1)),
}
_SHAPES = tuple(map(_shape_of, range(256)))


class Ending(NamedTuple):
    kind: OutcomeKind
    reply: Reply | None = None
    error: ScriptError | None = None
    kill_reason: KillReason | None = None
    """Why the child must not be used again; None if it may."""
    verdict: Retry | Fail | None = None


def ending_of_run(answer: Sequence[Any], limits: Limits, source: bytes = b"") -> Ending:
    """The ending that a child reports of a run. Raises ProtocolError if the answer is invalid."""
    kind, *values = answer or (None,)
    match decode(kind, MAX_MESSAGE_BYTES):
        case OutcomeKind.SUCCEEDED:
            return Ending(OutcomeKind.SUCCEEDED, reply=_reply(values, limits))
        case OutcomeKind.FAILED:
            return Ending(OutcomeKind.FAILED, error=_script_error(values, source))
        case OutcomeKind.OUT_OF_MEMORY if not values:
            return _out_of_memory(limits)
        case OutcomeKind.REPLY_TOO_LARGE if len(values) == 1:
            return _reply_too_large(values[0], limits)
        case "retry" if len(values) == 2:
            return _retry(*values)
        case "fail" if len(values) == 1:
            reason = decode(values[0], MAX_MESSAGE_BYTES)
            return _by_verdict(Fail(reason), "The script returned Fail without a reason")
    raise ProtocolError("an unknown kind of outcome")


def ending_of_syntax_check(answer: Sequence[Any], source: bytes) -> Ending:
    """The ending of a syntax check, from None or an error. Raises ProtocolError."""
    if list(answer) == [None]:
        return Ending(OutcomeKind.SUCCEEDED)
    return Ending(OutcomeKind.FAILED, error=_script_error(answer, source))


def uses_in_listing(answer: Sequence[Any], source: bytes) -> tuple[GlobalUse, ...]:
    """The uses of globals in the answer to a listing. Raises ProtocolError."""
    if len(answer) % _USE_FIELDS or len(answer) > _USE_FIELDS * MAX_LISTED_GLOBALS:
        raise ProtocolError("an impossible number of globals")
    starts = range(0, len(answer), _USE_FIELDS)
    lines = count_lines(source) if answer else 0
    return tuple(_global_use(*answer[at : at + _USE_FIELDS], lines=lines) for at in starts)


def _global_use(kind: Any, name: Any, line: Any, suggestion: Any, *, lines: int) -> GlobalUse:
    number = line_among(line, lines)
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


def _out_of_memory(limits: Limits) -> Ending:
    figure = figure_in_words(limits.lua_memory_bytes)
    message = f"The script used more than {figure} of memory"
    return Ending(OutcomeKind.OUT_OF_MEMORY, error=ScriptError(message))


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
        decode(reason, MAX_MESSAGE_BYTES),
    )
    return _by_verdict(verdict, "The script returned Retry without a reason")


def _by_verdict(verdict: Retry | Fail, without_reason: str) -> Ending:
    error = ScriptError(verdict.reason or without_reason)
    return Ending(OutcomeKind.FAILED, error=error, verdict=verdict)


def _script_error(values: Sequence[Any], source: bytes) -> ScriptError:
    """The error in a message, a line or None, and a traceback. Raises ProtocolError."""
    message, line, traceback = values if len(values) == 3 else (None, None, None)
    return ScriptError(
        decode(message, MAX_MESSAGE_BYTES),
        checked_line(line, source),
        decode(traceback, MAX_TRACEBACK_BYTES),
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


def checked_headers(flat: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Pair up the headers that a child sent as name, value, name, value, …

    Raises ProtocolError if the prelude could not have sent them: the child may have been taken
    over.
    """
    names, values = flat[::2], flat[1::2]
    if len(names) != len(values):
        raise ProtocolError("a reply with a header without a value")
    if len(names) > MAX_HEADERS + _DEFAULT_HEADERS:
        raise ProtocolError("a reply with too many headers")
    headers: dict[bytes, tuple[str, str]] = {}
    size_bytes = 0
    for name, value in zip(names, values, strict=True):
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            raise ProtocolError("a reply with headers that are not bytes")
        size_bytes += len(name) + len(value)
        if size_bytes > MAX_HEADER_BYTES + _DEFAULT_HEADER_BYTES:
            raise ProtocolError("a reply with headers that are too long")
        if not _HEADER_NAME.fullmatch(name) or _FORBIDDEN_IN_VALUES.search(value):
            raise ProtocolError("a reply with a malformed header")
        if is_reserved(name) or name.lower() in headers:
            raise ProtocolError("a reply with a header that it may not have")
        headers[name.lower()] = name.decode("ascii"), value.decode("latin-1")
    return tuple(headers.values())
