"""What the page of a version shows: what it changed, line by line."""

from dataclasses import dataclass
from typing import NamedTuple

from scripts_engine.flows.source import diff_from_previous
from scripts_engine.models import ScriptVersion


class DiffLine(NamedTuple):
    text: str
    kind: str


_KINDS = {"+": "added", "-": "removed", "@": "place"}
_FILE_NAMES = 2
# Each line is an element of the page: a hundred thousand of them take seconds to render.
MAX_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Diff:
    lines: list[DiffLine]
    hidden_lines: int


def diff_of(version: ScriptVersion) -> Diff:
    """Without the two lines that name what is compared; empty where nothing changed."""
    lines = diff_from_previous(version).split("\n")[_FILE_NAMES:]
    shown = [DiffLine(line, _KINDS.get(line[:1], "")) for line in lines[:MAX_LINES]]
    return Diff(shown, hidden_lines=len(lines) - len(shown))
