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

import struct
from enum import IntEnum
from typing import Any

import msgpack

from scripts_engine.sandbox.limits import MAX_FRAME_BYTES

HEADER = struct.Struct(">I")


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
    packed: bytes = msgpack.packb(message)
    return packed


def unpack(payload: bytes | bytearray | memoryview) -> Any:
    """The value of a msgpack text; strings stay bytes. Raises ProtocolError."""
    try:
        return msgpack.unpackb(payload, raw=True, strict_map_key=False)
    except (ValueError, msgpack.UnpackException, RecursionError, TypeError) as error:
        raise ProtocolError(f"not msgpack: {error}") from error


def encode(message: list[Any]) -> bytes:
    """A whole frame. Raises FrameTooLarge."""
    payload = pack(message)
    if len(payload) > MAX_FRAME_BYTES:
        raise FrameTooLarge(f"a message of {len(payload)} bytes is over {MAX_FRAME_BYTES}")
    return HEADER.pack(len(payload)) + payload


class FrameReader:
    """Collects received bytes and gives the frames out whole."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_frame(self) -> list[Any] | None:
        """The next whole message, or None until more bytes are there. Raises ProtocolError."""
        if len(self._buffer) < HEADER.size:
            return None
        (length,) = HEADER.unpack_from(self._buffer)
        if length > MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame of {length} bytes was announced")
        end = HEADER.size + length
        if len(self._buffer) < end:
            return None
        message = unpack(self._buffer[HEADER.size : end])
        del self._buffer[:end]
        if not isinstance(message, list) or not message:
            raise ProtocolError("a frame is not a list")
        return message
