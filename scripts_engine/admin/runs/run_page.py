"""What the page of a run tells of its log and its source."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from scripts_engine.admin.runs.timeline import offset_text
from scripts_engine.models import Run


@dataclass(frozen=True, slots=True)
class LogLine:
    at: datetime
    offset: str
    level: str
    text: str
    colour: str


_LEVEL_COLOURS = {"debug": "", "info": "info", "warn": "warning", "error": "danger"}


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
    """What ran: a version's source, or one that was tried before saving."""
    return run.unsaved_source if run.script_version is None else run.script_version.source


def source_around(run: Run, lines: int = 3) -> Sequence[tuple[int, str]]:
    """The lines of what ran, around the one with the error."""
    if run.error_line is None:
        return []
    numbered = list(enumerate(source_of(run).split("\n"), start=1))
    return numbered[max(0, run.error_line - 1 - lines) : run.error_line + lines]
