"""Unified diffs of sources, in bounded time."""

import difflib
import re
from collections.abc import Sequence

CONTEXT_LINES = 3
# difflib needs up to 0.3 s for texts of this many lines, and eight times that for twice as many.
MAX_COMPARED_LINES = 1_500
# A line that ends in NUL equals no line of a source, which has none.
_UNLIKE = "\0"


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
        _moved(line, first) if line.startswith("@@") else line.rstrip(_UNLIKE) for line in lines
    ]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of lines that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _moved(header: str, lines: int) -> str:
    """The header of a hunk, further down by some lines."""
    return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + lines), header)
