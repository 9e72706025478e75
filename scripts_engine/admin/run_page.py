"""What the page of a run shows: bytes made readable, times made relative."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scripts_engine.models import Run

SHOWN_TEXT = 100_000
SHOWN_HEX_BYTES = 512
_HEX_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes for display: as text, or in hexadecimal where they are no UTF-8."""

    size: int
    text: str
    is_binary: bool
    is_cut: bool


@dataclass(frozen=True, slots=True)
class LogLine:
    at: datetime
    level: str
    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class HostCall:
    name: str
    offset_ms: float
    duration_ms: float
    error: str


_LEVEL_COLOURS = {"debug": "", "info": "info", "warn": "warning", "error": "danger"}


def body_of(content: bytes | memoryview) -> Body:
    data = bytes(content)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Body(len(data), _hex(data[:SHOWN_HEX_BYTES]), True, len(data) > SHOWN_HEX_BYTES)
    text = _pretty(text).replace("\0", "\N{SYMBOL FOR NULL}")
    return Body(len(data), text[:SHOWN_TEXT], False, len(text) > SHOWN_TEXT)


def logs_of(run: Run) -> list[LogLine]:
    return [
        LogLine(
            datetime.fromtimestamp(line["at"], UTC),
            line["level"],
            line["text"],
            _LEVEL_COLOURS.get(line["level"], ""),
        )
        for line in run.logs
    ]


def host_calls_of(run: Run) -> list[HostCall]:
    return [
        HostCall(call["name"], call["offsetMs"], call["durationMs"], call["error"] or "")
        for call in run.host_calls
    ]


def source_around(run: Run, lines: int = 3) -> Sequence[tuple[int, str]]:
    """The lines of the version that ran, around the one with the error."""
    if run.error_line is None or run.script_version is None:
        return []
    numbered = list(enumerate(run.script_version.source.split("\n"), start=1))
    return numbered[max(0, run.error_line - 1 - lines) : run.error_line + lines]


def _pretty(text: str) -> str:
    """JSON objects and arrays indented; anything else, or too long to, as it is."""
    if len(text) > SHOWN_TEXT or not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(value, indent=2, ensure_ascii=False)


def _hex(data: bytes) -> str:
    """Sixteen bytes a line: offset, hexadecimal, ASCII."""
    rows = (data[start : start + _HEX_COLUMNS] for start in range(0, len(data), _HEX_COLUMNS))
    return "\n".join(
        f"{index * _HEX_COLUMNS:04x}  {row.hex(' '):<47}  "
        + "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        for index, row in enumerate(rows)
    )
