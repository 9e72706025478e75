"""Unified diffs of sources, and merges of two changed ones, line by line and in bounded time."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

CONTEXT_LINES = 3
# difflib needs up to 0.3 s for texts of this many lines, and eight times that for twice as many.
MAX_COMPARED_LINES = 1_500
# A line that ends in NUL equals no line of a source, which has none.
_UNLIKE = "\0"
Lines = Sequence[str]


def unified_diff(
    old: Sequence[str], new: Sequence[str], *, old_name: str, new_name: str
) -> list[str]:
    """The lines of a unified diff; none if nothing changed.

    Only what lies between the first and the last differing line is compared. Where that is more
    than 1,500 lines of either text, it is shown as one change. Lines must not contain NUL.
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    is_long = max(len(old), len(new)) - head - tail > MAX_COMPARED_LINES
    first = max(0, head - CONTEXT_LINES)
    spared = max(0, tail - CONTEXT_LINES)
    before = [
        line + _UNLIKE if is_long and head <= place < len(old) - tail else line
        for place, line in enumerate(old[: len(old) - spared])
    ]
    lines = difflib.unified_diff(
        before[first:],
        new[first : len(new) - spared],
        old_name,
        new_name,
        n=CONTEXT_LINES,
        lineterm="",
    )
    return [
        _further_down(line, first) if line.startswith("@@") else line.rstrip(_UNLIKE)
        for line in lines
    ]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of lines that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _further_down(header: str, lines: int) -> str:
    """The header of a hunk, further down by some lines."""
    return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + lines), header)


@dataclass(frozen=True, slots=True)
class Merged:
    text: str
    conflicts: int
    """Places where both texts changed the same lines; both are there, between markers."""


class _Hunk(NamedTuple):
    """The lines of the base from ``start`` to ``end`` became those of the other text."""

    start: int
    end: int
    other_start: int
    other_end: int


def merge(base: str, mine: str, theirs: str, *, their_name: str) -> Merged:
    """Merges what both texts changed of the base. Markers are those of git, and do not compile.

    Texts of which more than 1,500 lines differ count as changed throughout.
    """
    old = base.split("\n")
    sides = [_Side(old, mine.split("\n")), _Side(old, theirs.split("\n"))]
    lines: list[str] = []
    conflicts = place = 0
    for start, end in _regions(sides):
        lines += old[place:start]
        before, one, other = old[start:end], *(side.lines_for(start, end) for side in sides)
        if one in (before, other):
            lines += other
        elif other == before:
            lines += one
        else:
            conflicts += 1
            lines += ["<<<<<<< yours", *one, "=======", *other, f">>>>>>> {their_name}"]
        place = end
    return Merged("\n".join([*lines, *old[place:]]), conflicts)


class _Side:
    def __init__(self, old: Lines, new: Lines) -> None:
        self.new = new
        self.hunks = _hunks(old, new)

    def lines_for(self, start: int, end: int) -> Lines:
        """What became of these lines of the base, a region of whole hunks."""
        inside = [hunk for hunk in self.hunks if start <= hunk.start and hunk.end <= end]
        if not inside:
            before = [hunk for hunk in self.hunks if hunk.end <= start]
            first = _moved(start, before)
            return self.new[first : first + end - start]
        first = inside[0].other_start - (inside[0].start - start)
        last = inside[-1].other_end + (end - inside[-1].end)
        return self.new[first:last]


def _moved(line: int, hunks_before: Sequence[_Hunk]) -> int:
    """Where a line of the base that no hunk touches is in the other text."""
    if not hunks_before:
        return line
    last = hunks_before[-1]
    return line + last.other_end - last.end


def _hunks(old: Lines, new: Lines) -> list[_Hunk]:
    head = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        head += 1
    longest = min(len(old), len(new)) - head
    tail = 0
    while tail < longest and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if max(len(old), len(new)) - head - tail > MAX_COMPARED_LINES:
        return [_Hunk(head, len(old) - tail, head, len(new) - tail)]
    # Not without autojunk, or lines that repeat would cost the cube of their number.
    matcher = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail])
    return [
        _Hunk(start + head, end + head, other_start + head, other_end + head)
        for tag, start, end, other_start, other_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _regions(sides: Sequence[_Side]) -> list[tuple[int, int]]:
    """The lines of the base that hunks of either side touch; hunks that meet are one region."""
    regions: list[tuple[int, int]] = []
    for hunk in sorted(hunk for side in sides for hunk in side.hunks):
        if regions and hunk.start <= regions[-1][1]:
            start, end = regions[-1]
            regions[-1] = start, max(end, hunk.end)
        else:
            regions.append((hunk.start, hunk.end))
    return regions
