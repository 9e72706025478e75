"""A conflict of an edit: both sources side by side, and a merged text to edit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from uuid import UUID

from scripts_engine.admin.differences import MAX_LINES, DiffLine
from scripts_engine.line_diff import MAX_COMPARED_LINES
from scripts_engine.merging import Merged, merge
from scripts_engine.models import Script, ScriptVersion


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sources that both differ from the one that the edit began with."""

    their_title: str
    theirs: list[DiffLine]
    yours: list[DiffLine]
    merged: Merged


def compared(script: Script, source: str, *, base: ScriptVersion | None) -> Compared | None:
    """The source in an editor, and what is live now; ``None`` if what is live did not change."""
    live = script.current_version
    if live is None or live.source in {source, "" if base is None else base.source}:
        return None
    return _compared(
        f"Version {live.number}, live", live.source, source, "" if base is None else base.source
    )


def compared_with_draft(
    draft: ScriptVersion, source: str, *, base: ScriptVersion | None
) -> Compared:
    """The source in an editor, and the same author's draft as another window saved it."""
    title = "Your draft from another window"
    return _compared(title, draft.source, source, "" if base is None else base.source)


def version_named(script: Script, version_id: UUID | None) -> ScriptVersion | None:
    """The version of the script with the id, which a form may have been given."""
    return None if version_id is None else script.versions.filter(pk=version_id).first()


def _compared(title: str, theirs: str, yours: str, base: str) -> Compared:
    one, other = theirs.split("\n"), yours.split("\n")
    same = _common_places(one, other)
    return Compared(
        title,
        list(_shown(one, {place for place, _ in same}, "removed")),
        list(_shown(other, {place for _, place in same}, "added")),
        merge(base, yours, theirs, their_name=title.lower()),
    )


def _common_places(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    if max(len(one), len(other)) > MAX_COMPARED_LINES:
        return []
    # Not without autojunk, or lines that repeat would cost the cube of their number.
    blocks = SequenceMatcher(None, one, other).get_matching_blocks()
    return [(a + step, b + step) for a, b, size in blocks for step in range(size)]


def _shown(lines: Sequence[str], same: set[int], kind: str) -> Iterator[DiffLine]:
    for place, line in enumerate(lines[:MAX_LINES]):
        yield DiffLine(line, "" if place in same else kind)
