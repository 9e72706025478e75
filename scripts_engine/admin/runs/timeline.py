"""The timeline of a run, as SVG. Positions and widths are lengths in percent."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from scripts_engine.models import Run

MAX_SHOWN_CALLS = 100
MAX_TICKS = 200
_MARKS = 4
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
        for call in run.host_calls[:MAX_SHOWN_CALLS]
    ]
    started = run.started_at.timestamp()
    ticks = [
        _tick(axis, (line["at"] - started) * 1000, line["level"], line["text"])
        for line in run.logs[:MAX_TICKS]
    ]
    return Timeline(
        bars=bars,
        hidden_calls=max(len(run.host_calls) - MAX_SHOWN_CALLS, 0),
        ticks=ticks,
        logged_lines=len(run.logs),
        marks=list(axis.marks()),
    )


def offset_text(ms: float) -> str:
    """Time relative to the start of the run."""
    sign = "\N{MINUS SIGN}" if ms < 0 else "+"
    return sign + duration_text(abs(ms))


def duration_text(ms: float) -> str:
    return f"{ms:.1f} ms" if ms < 1000 else f"{ms / 1000:.2f} s"


def _tick(axis: _Axis, ms: float, level: str, text: str) -> Tick:
    return Tick(level, _percent(axis.place(ms)), f"{offset_text(ms)} {level}: {text[:80]}")


def _axis_label(ms: float) -> str:
    text = f"{abs(ms):g} ms" if abs(ms) < 1000 else f"{abs(ms) / 1000:g} s"
    return f"\N{MINUS SIGN}{text}" if ms < 0 else text


def _round_up(ms: float) -> float:
    """Rounds up to 1, 2 or 5 times a power of ten."""
    power: float = 10 ** math.floor(math.log10(ms))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= ms)


def _percent(place: float) -> str:
    return f"{place:.2f}%"
