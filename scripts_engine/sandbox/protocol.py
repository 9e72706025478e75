"""What passes between the worker and a child: frames, and the log of a run in shared memory.

A frame is four bytes of length, then msgpack.

Never pickle, which can run code: an attacker may have written what a child sends.

    worker -> child   [RUN, source, chunk_name, requires, params, headers, limits, trace_lines]
                      [CHECK, source, chunk_name]
                      [LIST, source]
                      [COUNT]                   how many runs the Lua state has served
                      [VALUE, packed value]     the answer to a CALL, or a NEED (`pack_library`)
                      [ERROR, message]          the failure of a CALL, raised in Lua
    child -> worker   [READY] or [REFUSED, reason]
                      [CALL, name, packed arguments]
                      [NEED, key]               of a library that the child has not compiled
                      [DONE, total_cpu_seconds, kind, …]

Between the worker and its fork server, one packet each way:

    FORK                 -> NUMBER pid, with the child's socket, pidfd and log file attached,
                            or the number of the error that the system gave, negative
    EXIT_STATUS, NUMBER  -> NUMBER wait status of that child, which has ended

The log is in memory that both map. It stays readable when a script is killed, and a log line costs
no system call. The child may write anything there at any time, so the worker checks each record and
bounds what it reads.

    0  uint32  bytes used by records
    4  uint32  current line, if lines are traced
    8  records: float64 time, uint8 level, uint32 length, text
"""

from __future__ import annotations

import mmap
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Generic, TypeVar

import msgpack

from scripts_engine.sandbox.contract import Library, LogLine, pack_texts
from scripts_engine.sandbox.limits import (
    KIB,
    MAX_ANSWER_BYTES,
    MAX_FRAME_BYTES,
    MAX_LOG_LINES,
    MAX_LOG_TEXT_BYTES,
)

Frame = TypeVar("Frame")

HEADER = struct.Struct(">I")
# First size of a packing buffer, which grows as needed. The default of msgpack is so large that
# malloc maps it from the OS each time.
FIRST_PACKING_BYTES = 1024
# Size of the receive buffer; a longer frame gets a buffer of its own. Small enough that malloc does
# not map it from the OS each time.
USUAL_BYTES = 64 * 1024
# A payload is a list of up to 15 fields, or of more; the first field is the tag.
_SHORT_LIST, _LONG_LIST = range(0x91, 0xA0), 0xDC
_TAG_WITHIN_BYTES = 4

FORK = b"F"
EXIT_STATUS = b"E"
NUMBER = struct.Struct(">q")
# The exit status of a child that reached its address space limit outside of Lua.
EXIT_OUT_OF_MEMORY = 3

LEVELS = ("debug", "info", "warn", "error")
# The year 9000: later times may not be valid dates in every time zone.
_MAX_TIME = 221_845_392_000.0
_HEAD = struct.Struct("<II")
_USED = struct.Struct("<I")
_LINE = struct.Struct("<I")
_RECORD = struct.Struct("<dBI")
AREA_BYTES = _HEAD.size + MAX_LOG_TEXT_BYTES + (MAX_LOG_LINES + 16) * _RECORD.size


def create_area_file() -> int:
    """Create an anonymous file of the right size; the caller closes the descriptor."""
    descriptor = os.memfd_create("run-log", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, AREA_BYTES)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class LogArea:
    """One side's view of the area."""

    def __init__(self, descriptor: int) -> None:
        """Map the file and close the descriptor, also if the mapping fails: it keeps its own."""
        try:
            self._memory = mmap.mmap(descriptor, AREA_BYTES)
        finally:
            os.close(descriptor)
        self._end = _HEAD.size

    def clear(self) -> None:
        self._end = _HEAD.size
        _HEAD.pack_into(self._memory, 0, 0, 0)

    def append(self, at: float, level: int, text: bytes) -> None:
        """Add a line, or drop it if it does not fit: the log limits stop a script long before."""
        record = _RECORD.pack(at, level, len(text)) + text
        end = self._end + len(record)
        if end > AREA_BYTES:
            return
        self._memory[self._end : end] = record
        self._end = end
        # Written last, so that a kill in between leaves only whole records.
        _USED.pack_into(self._memory, 0, end - _HEAD.size)

    def set_current_line(self, line: int) -> None:
        _LINE.pack_into(self._memory, 4, line)

    def current_line(self) -> int | None:
        """The last line that the trace of this run reported."""
        line: int = _LINE.unpack_from(self._memory, 4)[0]
        return line or None

    def lines(self) -> tuple[LogLine, ...]:
        """All whole lines, up to the first invalid record."""
        used = min(_USED.unpack_from(self._memory, 0)[0], AREA_BYTES - _HEAD.size)
        if used == 0:
            return ()
        data = self._memory[_HEAD.size : _HEAD.size + used]
        found: list[LogLine] = []
        position = 0
        while position + _RECORD.size <= used and len(found) < MAX_LOG_LINES + 16:
            at, level, length = _RECORD.unpack_from(data, position)
            position += _RECORD.size
            if position + length > used or level >= len(LEVELS) or not 0 <= at <= _MAX_TIME:
                break
            text = data[position : position + length].decode("utf-8", "replace")
            found.append(LogLine(at=at, level=LEVELS[level], text=text))
            position += length
        return tuple(found)

    def close(self) -> None:
        self._memory.close()


class ProtocolError(Exception):
    """The other side broke the protocol."""


class FrameTooLarge(ProtocolError):
    """A message is over MAX_FRAME_BYTES; no part of it was sent."""


class Tag(IntEnum):
    RUN = 1
    CHECK = 2
    VALUE = 3
    ERROR = 4
    READY = 5
    REFUSED = 6
    CALL = 7
    DONE = 8
    LIST = 9
    COUNT = 10
    NEED = 11


# Maximum frame length of each side, by tag.
FROM_WORKER: Mapping[int, int] = dict.fromkeys(
    (Tag.RUN, Tag.CHECK, Tag.LIST, Tag.COUNT, Tag.VALUE, Tag.ERROR), MAX_FRAME_BYTES
)
FROM_CHILD: Mapping[int, int] = {
    Tag.READY: 16,
    Tag.REFUSED: 4 * KIB,
    Tag.CALL: MAX_FRAME_BYTES,
    Tag.NEED: KIB,
    Tag.DONE: MAX_ANSWER_BYTES,
}


def pack(message: Any) -> bytes:
    """Pack a message as msgpack, without the length."""
    packed: bytes = msgpack.Packer(buf_size=FIRST_PACKING_BYTES).pack(message)
    return packed


def pack_library(chunk_name: bytes, library: Library) -> bytes:
    """Chunk name, source, then name and key of each requirement; see `pack_texts`."""
    named = [part for pair in library.requires.items() for part in pair]
    return pack_texts([chunk_name, library.source, *named])


def unpack(payload: bytes | bytearray | memoryview, **limits: int) -> Any:
    """Unpack one msgpack value; strings stay bytes. Raises ProtocolError.

    `limits` are those of msgpack, such as max_array_len.
    """
    try:
        return msgpack.unpackb(payload, raw=True, strict_map_key=False, max_ext_len=0, **limits)
    except (ValueError, msgpack.UnpackException, RecursionError, TypeError) as error:
        raise ProtocolError(f"not msgpack: {str(error)[:100]}") from error


def unpack_message(payload: bytes | bytearray | memoryview) -> list[Any]:
    """Unpack a frame of the trusted side: tag and fields. Raises ProtocolError."""
    message = unpack(payload)
    if not isinstance(message, list) or not message:
        raise ProtocolError("a frame is not a list")
    return message


def encode(message: Sequence[Any]) -> bytes:
    """Make a frame of a message. Raises FrameTooLarge."""
    payload = pack(message)
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"a message of {len(payload)} bytes is over {MAX_FRAME_BYTES}")
    return HEADER.pack(len(payload)) + payload


class FrameReader(Generic[Frame]):
    """Receives bytes into one buffer, which is reused, and returns whole frames.

    Most frames arrive in one piece and are unpacked in place.
    """

    def __init__(self, max_bytes: Mapping[int, int], read: Callable[[memoryview], Frame]) -> None:
        """`max_bytes` lists the expected tags; `read` makes a frame of a payload."""
        self._max_bytes = max_bytes
        self._read = read
        self._buffer = memoryview(bytearray(USUAL_BYTES))
        self._filled = 0

    def receive_from(self, channel: socket.socket) -> int:
        """Receive once and return the number of bytes, 0 at the end of the stream."""
        count = channel.recv_into(self._buffer[self._filled :])
        self._filled += count
        return count

    @property
    def has_rest(self) -> bool:
        """Whether bytes are left that `next_frame` has not returned."""
        return self._filled > 0

    def next_frame(self) -> Frame | None:
        """The next whole frame, or None if more bytes are needed. Raises ProtocolError."""
        if self._filled < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._buffer)
        if length > MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame of {length} bytes was announced")
        start = HEADER.size + min(length, _TAG_WITHIN_BYTES)
        if self._filled < start:
            return None
        # Checked before memory is allocated for the payload.
        if length > self._max_bytes.get(_tag_of(self._buffer[HEADER.size : start]), 0):
            raise ProtocolError(f"an unexpected frame of {length} bytes was announced")
        end = HEADER.size + length
        if self._filled < end:
            if end > len(self._buffer):
                self._move_to(end, 0)
            return None
        frame = self._read(self._buffer[HEADER.size : end])
        if self._filled > end or len(self._buffer) > USUAL_BYTES:
            self._move_to(USUAL_BYTES, end)
        else:
            self._filled = 0
        return frame

    def _move_to(self, size: int, start: int) -> None:
        """Replace the buffer, keeping the received bytes from `start` on."""
        rest = self._buffer[start : self._filled]
        self._buffer = memoryview(bytearray(max(size, len(rest))))
        self._buffer[: len(rest)] = rest
        self._filled = len(rest)


def _tag_of(start: memoryview) -> int:
    """The tag of a payload that starts with these bytes, or -1."""
    if len(start) < 2:
        return -1
    if start[0] in _SHORT_LIST:
        return start[1]
    return start[3] if start[0] == _LONG_LIST and len(start) == _TAG_WITHIN_BYTES else -1
