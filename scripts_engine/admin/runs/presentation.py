"""How runs are shown: on their page (log, source, error), and their outcomes in lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from django.utils.safestring import SafeString

from core.admin.display import DANGER, INFO, SUCCESS, WARNING, label
from scripts_engine.admin.runs.timeline import offset_text
from scripts_engine.failures import first_line
from scripts_engine.models import Run, RunStatus

COLOURS: dict[str, str] = {
    RunStatus.SUCCEEDED: SUCCESS,
    RunStatus.FAILED: DANGER,
    RunStatus.TIMED_OUT: WARNING,
    RunStatus.OUT_OF_MEMORY: WARNING,
    RunStatus.QUEUED: INFO,
    RunStatus.RUNNING: INFO,
    RunStatus.LOST: DANGER,
    RunStatus.CANCELLED: "",
}
# Source lines shown before and after that of an error.
_LINES_AROUND = 3
_LEVEL_COLOURS = {"debug": "", "info": INFO, "warn": WARNING, "error": DANGER}


def status_label(status: str) -> SafeString:
    return label(RunStatus(status).label, COLOURS[status])


def hint_of_error(run: Run) -> str:
    """The setting concerned, if the script failed with the error of a host call."""
    for call in reversed(run.host_calls):
        if call["hint"] and call["error"] and call["error"] in run.error_message:
            hint: str = call["hint"]
            return hint
    return ""


@dataclass(frozen=True, slots=True)
class ShownLine:
    at: datetime
    offset: str
    level: str
    text: str
    colour: str


def logs_of(run: Run) -> list[ShownLine]:
    started = run.started_at.timestamp()
    return [
        ShownLine(
            datetime.fromtimestamp(line["at"], UTC),
            offset_text((line["at"] - started) * 1000),
            line["level"],
            line["text"],
            _LEVEL_COLOURS.get(line["level"], ""),
        )
        for line in run.logs
    ]


def _source_of(run: Run) -> str:
    """The source that ran: a version's, or one tried before it was saved."""
    return run.unsaved_source if run.script_version is None else run.script_version.source


def source_around(run: Run) -> Sequence[tuple[int, str]]:
    """Numbered source lines around the error."""
    if run.error_line is None:
        return []
    numbered = list(enumerate(_source_of(run).split("\n"), start=1))
    return numbered[max(0, run.error_line - 1 - _LINES_AROUND) : run.error_line + _LINES_AROUND]


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


def trigger_of(run: Run, name: str) -> str:
    """The name of what started the run; drafts are marked."""
    return f"{name}, draft" if run.is_draft else name
