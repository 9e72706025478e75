"""Checks the frames of a child and turns them into values that the worker may use.

Role in a run: every message from the child passes through here. A script may have taken over the
child, so the type, range and length of each field are checked. `endings` checks the fields of an
answer with the same functions.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from scripts_engine.sandbox.contract import HOST_CALLS, HostCallError
from scripts_engine.sandbox.limits import (
    MAX_ANSWER_FIELDS,
    MAX_ARGUMENT_DEPTH,
    MAX_ARGUMENT_VALUES,
    MAX_MESSAGE_BYTES,
)
from scripts_engine.sandbox.protocol import ProtocolError, Tag, unpack

# More than any process uses, and less than the largest limit that the kernel accepts.
MAX_CPU_SECONDS = 1e9
# No list in arguments is longer. The limit is needed since msgpack allocates a list's announced
# length before it reads the values.
_MAX_LIST = 16
_LINE_END = re.compile(rb"\r\n|\n\r|\n|\r")
# A message up to this size cannot unpack into many values, so it is not counted.
_SMALL_BYTES = 4096


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


class Done(NamedTuple):
    """The answer to a run or a syntax check."""

    cpu_seconds: float
    """CPU time of the process since its start."""
    answer: list[Any]
    """Not checked yet; `endings` does."""


Frame = Ready | Refused | Call | Done


def read(payload: memoryview) -> Frame:
    """Read and check the frame in a payload. Raises ProtocolError."""
    if _unfolds_too_far(payload, MAX_ANSWER_FIELDS, max_depth=1):
        raise ProtocolError("a frame of too many values")
    tag, *fields = unpack(payload, max_array_len=MAX_ANSWER_FIELDS, max_map_len=0)
    if tag == Tag.DONE:
        return _done(fields)
    if tag == Tag.CALL:
        return _call(fields)
    if tag == Tag.READY and not fields:
        return Ready()
    if tag == Tag.REFUSED and len(fields) == 1:
        return Refused(text(fields[0], MAX_MESSAGE_BYTES))
    raise ProtocolError("a frame that makes no sense")


def text(value: Any, max_bytes: int) -> str:
    """Decode the first `max_bytes` of a bytes value. Raises ProtocolError for other types."""
    if not isinstance(value, bytes):
        raise ProtocolError("a text is missing")
    return value[:max_bytes].decode("utf-8", "replace")


def line(value: Any, source: bytes) -> int | None:
    """The number of a line of the source, or None for any other number. Raises ProtocolError.

    A script may choose the number, by raising an error that looks like one of Lua's own.
    """
    return None if value is None else line_among(value, lines_of(source))


def line_among(value: Any, lines: int) -> int | None:
    """``line``, for several numbers of one source, whose lines are counted once."""
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


def lines_of(source: bytes) -> int:
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
