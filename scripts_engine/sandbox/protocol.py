"""Frames between the worker and a child: four bytes of length, then msgpack.

Nothing is ever unpickled: what comes out of a child may have been written by an attacker.

    worker -> child   [RUN, source, chunk_name, params, headers, limits, trace_lines]
                      [CHECK, source, chunk_name]
                      [VALUE, packed value]     the answer to a CALL
                      [ERROR, message]          likewise, raised in Lua
    child -> worker   [READY] or [REFUSED, reason]
                      [CALL, name, packed arguments]
                      [DONE, total_cpu_seconds, kind, …]
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import msgpack

from scripts_engine.sandbox.limits import MAX_FRAME_BYTES

HEADER = struct.Struct(">I")
# It grows when need be. The default is so large that malloc asks the system for it each time.
FIRST_PACKING_BYTES = 1024
# The buffer for frames: longer ones get one of their own. Below the size from which malloc asks
# the system for memory each time.
USUAL_BYTES = 64 * 1024


class ProtocolError(Exception):
    """The other side did not keep to the protocol."""


class FrameTooLarge(ProtocolError):
    """A message is over MAX_FRAME_BYTES; nothing of it was sent."""


class Tag(IntEnum):
    RUN = 1
    CHECK = 2
    VALUE = 3
    ERROR = 4
    READY = 5
    REFUSED = 6
    CALL = 7
    DONE = 8


def pack(message: Any) -> bytes:
    """A message as msgpack, without the length."""
    packed: bytes = msgpack.Packer(buf_size=FIRST_PACKING_BYTES).pack(message)
    return packed


def unpack(payload: bytes | bytearray | memoryview) -> Any:
    """The value of a msgpack text; strings stay bytes. Raises ProtocolError."""
    try:
        return msgpack.unpackb(payload, raw=True, strict_map_key=False)
    except (ValueError, msgpack.UnpackException, RecursionError, TypeError) as error:
        raise ProtocolError(f"not msgpack: {error}") from error


def encode(message: Sequence[Any]) -> bytes:
    """A whole frame. Raises FrameTooLarge."""
    payload = pack(message)
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"a message of {len(payload)} bytes is over {MAX_FRAME_BYTES}")
    return HEADER.pack(len(payload)) + payload


class FrameReader:
    """Receives bytes into one buffer, used again and again, and gives the frames out whole.

    Most messages come whole, in one piece, and are unpacked where they were received.
    """

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(USUAL_BYTES))
        self._filled = 0

    def receive_from(self, channel: socket.socket) -> int:
        """Receive once: how many bytes, 0 at the end. Raises what `recv_into` raises."""
        count = channel.recv_into(self._buffer[self._filled :])
        self._filled += count
        return count

    def next_frame(self) -> list[Any] | None:
        """The next whole message, or None until more bytes are there. Raises ProtocolError."""
        if self._filled < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._buffer)
        if length > MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame of {length} bytes was announced")
        end = HEADER.size + length
        if self._filled < end:
            if end > len(self._buffer):
                self._move_to(end, 0)
            return None
        message = unpack(self._buffer[HEADER.size : end])
        if self._filled > end or len(self._buffer) > USUAL_BYTES:
            self._move_to(USUAL_BYTES, end)
        else:
            self._filled = 0
        if not isinstance(message, list) or not message:
            raise ProtocolError("a frame is not a list")
        return message

    def _move_to(self, size: int, start: int) -> None:
        """Go on in a new buffer, with what was received from `start` on."""
        rest = self._buffer[start : self._filled]
        self._buffer = memoryview(bytearray(max(size, len(rest))))
        self._buffer[: len(rest)] = rest
        self._filled = len(rest)
