"""Data of a run's page: timeline, log and source, and of the list: errors and triggers.

Positions are SVG lengths in percent.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from scripts_engine.admin.strengths import strength_label
from scripts_engine.failures import first_line
from scripts_engine.models import IdempotencyKey, Run
from scripts_engine.senders import PRESETS, Strength

MAX_CALLS = 100
MAX_TICKS = 200
_MARKS = 4
_LEVEL_COLOURS = {"debug": "", "info": "info", "warn": "warning", "error": "danger"}
# Narrower bars would be invisible.
_MIN_BAR_WIDTH = 0.5


class Bar(NamedTuple):
    kind: str
    label: str
    when: str
    took: str
    x: str
    width: str
    error: str = ""
    hint: str = ""


class Tick(NamedTuple):
    """A log line on the time axis."""

    level: str
    x: str
    title: str


class Mark(NamedTuple):
    """A labelled position on the time axis."""

    x: str
    label: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Timeline:
    bars: list[Bar]
    hidden_calls: int
    ticks: list[Tick]
    logged_lines: int
    marks: list[Mark]


class _Axis:
    """Time axis from the run's arrival in the queue to its end; zero is its start."""

    def __init__(self, run: Run) -> None:
        self.begin = -max(run.queued_ms, 0)
        self.end = max(run.duration_ms, 0.001)
        self._span = self.end - self.begin

    def place(self, ms: float) -> float:
        return min(max((ms - self.begin) / self._span * 100, 0), 100)

    def bar(
        self,
        kind: str,
        label: str,
        start_ms: float,
        duration_ms: float,
        error: str = "",
        hint: str = "",
    ) -> Bar:
        width = max(self.place(start_ms + duration_ms) - self.place(start_ms), _MIN_BAR_WIDTH)
        x = min(self.place(start_ms), 100 - width)
        when, took = offset_text(start_ms), duration_text(duration_ms)
        return Bar(kind, label, when, took, _percent(x), _percent(width), error, hint)

    def marks(self) -> Iterator[Mark]:
        step = _round_up(self._span / _MARKS)
        for number in range(math.ceil(self.begin / step), math.floor(self.end / step) + 1):
            place = self.place(number * step)
            anchor = "start" if place < 8 else "end" if place > 92 else "middle"
            yield Mark(_percent(place), _axis_label(number * step), anchor)


def timeline_of(run: Run) -> Timeline:
    axis = _Axis(run)
    bars = [
        axis.bar("waited", "Queue time", -run.queued_ms, run.queued_ms),
        axis.bar("ran", "Script", 0, run.duration_ms),
    ]
    bars += [
        axis.bar(
            "failed" if call["error"] else "call",
            call["summary"],
            call["offsetMs"],
            call["durationMs"],
            call["error"] or "",
            call["hint"],
        )
        for call in run.host_calls[:MAX_CALLS]
    ]
    started = run.started_at.timestamp()
    ticks = [
        _tick(axis, (line["at"] - started) * 1000, line["level"], line["text"])
        for line in run.logs[:MAX_TICKS]
    ]
    return Timeline(
        bars=bars,
        hidden_calls=max(len(run.host_calls) - MAX_CALLS, 0),
        ticks=ticks,
        logged_lines=len(run.logs),
        marks=list(axis.marks()),
    )


def hint_of_error(run: Run) -> str:
    """The setting concerned, if the script failed with the error of a host call."""
    for call in reversed(run.host_calls):
        if call["hint"] and call["error"] and call["error"] in run.error_message:
            hint: str = call["hint"]
            return hint
    return ""


def offset_text(ms: float) -> str:
    """Time relative to the start of the run."""
    sign = "\N{MINUS SIGN}" if ms < 0 else "+"
    return sign + duration_text(abs(ms))


def duration_text(ms: float) -> str:
    return f"{ms:.1f} ms" if ms < 1000 else f"{ms / 1000:.2f} s"


def _tick(axis: _Axis, ms: float, level: str, text: str) -> Tick:
    return Tick(level, _percent(axis.place(ms)), f"{offset_text(ms)} {level}: {text[:80]}")


def _axis_label(ms: float) -> str:
    label = f"{abs(ms):g} ms" if abs(ms) < 1000 else f"{abs(ms) / 1000:g} s"
    return f"\N{MINUS SIGN}{label}" if ms < 0 else label


def _round_up(ms: float) -> float:
    """Rounds up to 1, 2 or 5 times a power of ten."""
    power: float = 10 ** math.floor(math.log10(ms))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= ms)


def _percent(place: float) -> str:
    return f"{place:.2f}%"


@dataclass(frozen=True, slots=True)
class LogLine:
    at: datetime
    offset: str
    level: str
    text: str
    colour: str


def logs_of(run: Run) -> list[LogLine]:
    started = run.started_at.timestamp()
    return [
        LogLine(
            datetime.fromtimestamp(line["at"], UTC),
            offset_text((line["at"] - started) * 1000),
            line["level"],
            line["text"],
            _LEVEL_COLOURS.get(line["level"], ""),
        )
        for line in run.logs
    ]


def source_of(run: Run) -> str:
    """The source that ran: a version's, or one tried before it was saved."""
    return run.unsaved_source if run.script_version is None else run.script_version.source


def source_around(run: Run, lines: int = 3) -> Sequence[tuple[int, str]]:
    """Numbered source lines around the error."""
    if run.error_line is None:
        return []
    numbered = list(enumerate(source_of(run).split("\n"), start=1))
    return numbered[max(0, run.error_line - 1 - lines) : run.error_line + lines]


def errors_of(run_ids: Sequence[UUID]) -> dict[UUID, tuple[str, str]]:
    """By run: the error, and its first line with the line number. Leaves out empty errors."""
    runs = Run.objects.filter(pk__in=run_ids).exclude(error_message="").order_by()
    return {
        run.pk: (run.error_message, error_of(run))
        for run in runs.only("status", "error_message", "error_line")
    }


def error_of(run: Run) -> str:
    """The error on one line, with the line number; the outcome if there is no error text."""
    text = first_line(run.error_message, run.status)
    # Lua's own messages begin with the script's name and the line.
    has_line = run.error_line is None or f":{run.error_line}: " in text
    return text if has_line else f"Line {run.error_line}: {text}"


def trigger_of(run: Run) -> str:
    """The hook's name, or the kind of trigger; drafts are marked."""
    trigger = str(run.hook or run.get_trigger_display())
    return trigger if run.script_version_id else f"{trigger}, unsaved draft"


class SenderOfRun(NamedTuple):
    name: str
    strength: str
    event_id: str | None
    """Empty if deliveries are recognised by it and the call had none; ``None`` if they are not."""
    duplicates: int


def sender_of(run: Run) -> SenderOfRun | None:
    """Who sent the call, and how that is proved; ``None`` for a hook without a sender."""
    if not run.sender or not run.verified:
        return None
    preset = PRESETS.get(run.sender)
    key = IdempotencyKey.objects.filter(run_id=run.pk).first()
    return SenderOfRun(
        name=run.sender if preset is None else preset.title,
        strength=strength_label(Strength(run.verified)),
        event_id=run.event_id,
        duplicates=0 if key is None else key.duplicates,
    )
