"""What the page of a version shows: what it changed, line by line."""

from typing import NamedTuple

from scripts_engine.flows.version_diff import diff_from_previous
from scripts_engine.models import ScriptVersion


class DiffLine(NamedTuple):
    text: str
    kind: str


_KINDS = {"+": "added", "-": "removed", "@": "place"}
_FILE_NAMES = 2


def diff_lines(version: ScriptVersion) -> list[DiffLine]:
    """Without the two lines that name what is compared; none where nothing changed."""
    lines = diff_from_previous(version).split("\n")[_FILE_NAMES:]
    return [DiffLine(line, _KINDS.get(line[:1], "")) for line in lines]
