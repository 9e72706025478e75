"""The frames between the worker and a child: four bytes of length, then msgpack.

Never pickle, which can run code: an attacker may have written what a child sends.

    worker -> child   [RUN, source, chunk_name, params, headers, limits, trace_lines]
                      [CHECK, source, chunk_name]
                      [LIST, source]
                      [COUNT]                   how many runs the Lua state has served
                      [VALUE, packed value]     the answer to a CALL
                      [ERROR, message]          the failure of a CALL, raised in Lua
    child -> worker   [READY] or [REFUSED, reason]
                      [CALL, name, packed arguments]
                      [DONE, total_cpu_seconds, kind, …]

Between the worker and its fork server, one packet each way:

    FORK                 -> NUMBER pid, with the child's socket, pidfd and log file attached,
                            or the number of the error that the system gave, negative
    EXIT_STATUS, NUMBER  -> NUMBER wait status of that child, which has ended
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Generic, TypeVar

import msgpack

from scripts_engine.sandbox.limits import KIB, MAX_ANSWER_BYTES, MAX_FRAME_BYTES

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


# Maximum frame length of each side, by tag.
FROM_WORKER: Mapping[int, int] = dict.fromkeys(
    (Tag.RUN, Tag.CHECK, Tag.LIST, Tag.COUNT, Tag.VALUE, Tag.ERROR), MAX_FRAME_BYTES
)
FROM_CHILD: Mapping[int, int] = {
    Tag.READY: 16,
    Tag.REFUSED: 4 * KIB,
    Tag.CALL: MAX_FRAME_BYTES,
    Tag.DONE: MAX_ANSWER_BYTES,
}


def pack(message: Any) -> bytes:
    """Pack a message as msgpack, without the length."""
    packed: bytes = msgpack.Packer(buf_size=FIRST_PACKING_BYTES).pack(message)
    return packed


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
