"""The log of a run, in memory shared by the child and the worker.

The log of a killed script stays readable, and a log line costs no system call. The child may
write anything here at any time, so the worker checks each record and bounds what it reads.

    0  uint32  bytes used by records
    4  uint32  current line, if lines are traced
    8  records: float64 time, uint8 level, uint32 length, text
"""

from __future__ import annotations

import mmap
import os
import struct

from scripts_engine.sandbox.contract import LogLine
from scripts_engine.sandbox.limits import MAX_LOG_BYTES, MAX_LOG_LINES

LEVELS = ("debug", "info", "warn", "error")
# The year 9000: later times may not be valid dates in every time zone.
_MAX_TIME = 221_845_392_000.0
_HEAD = struct.Struct("<II")
_USED = struct.Struct("<I")
_LINE = struct.Struct("<I")
_RECORD = struct.Struct("<dBI")
_NOTICE_ROOM_BYTES = 4096
MAX_TEXT_BYTES = MAX_LOG_BYTES + _NOTICE_ROOM_BYTES
AREA_BYTES = _HEAD.size + MAX_TEXT_BYTES + (MAX_LOG_LINES + 16) * _RECORD.size


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
