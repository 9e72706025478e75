"""Unified diffs of any two texts, in bounded time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

# Lines of context around a change, as `diff -u` has.
CONTEXT_LINES = 3
# Steps of the search for the shortest diff: at most about 0.2 s and 2 MB.
MAX_STEPS = 250_000


class Change(NamedTuple):
    """The half-open range of old lines that a range of new lines replaces."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def unified_diff(
    old: Sequence[str],
    new: Sequence[str],
    *,
    old_name: str,
    new_name: str,
    max_steps: int = MAX_STEPS,
) -> list[str]:
    """The lines of a unified diff; none if nothing changed."""
    changes = find_changes(old, new, max_steps=max_steps)
    if not changes:
        return []
    lines = [f"--- {old_name}", f"+++ {new_name}"]
    for hunk in _hunks(changes):
        lines += _hunk_lines(old, new, hunk)
    return lines


def find_changes(
    old: Sequence[str], new: Sequence[str], *, max_steps: int = MAX_STEPS
) -> list[Change]:
    """The changes in order, separated by unchanged lines.

    They delete and insert as few lines as possible. If ``max_steps`` do not suffice to find them,
    there is one change, from the first to the last line that differs.
    """
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old_end, new_end = len(old) - tail, len(new) - tail
    if head == old_end == new_end:
        return []
    trace = _search(old[head:old_end], new[head:new_end], max_steps)
    if trace is None:
        return [Change(head, old_end, head, new_end)]
    edits = _edits(trace, old_end - head, new_end - head)
    return _joined(Change(*(place + head for place in edit)) for edit in edits)


def _search(old: Sequence[str], new: Sequence[str], max_steps: int) -> list[array[int]] | None:
    """The furthest position in ``old`` on each diagonal, for each number of edits up to the least.

    Entry ``i`` of row ``edits`` belongs to the diagonal ``2 * i - edits``, the difference between
    the positions in ``old`` and ``new``. This is the algorithm of Myers, "An O(ND) Difference
    Algorithm and Its Variations", 1986: time and memory are quadratic in the number of edits, in
    the worst case edits times lines. ``None`` if that exceeds ``max_steps``.
    """
    rows: list[array[int]] = []
    before = array("l", [0])
    steps = 0
    for edits in range(len(old) + len(new) + 1):
        row = array("l")
        for i in range(edits + 1):
            diagonal = 2 * i - edits
            x = before[i] if _is_insertion(before, i) else before[i - 1] + 1
            steps += 1
            while x < len(old) and 0 <= x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
                steps += 1
            row.append(x)
            if x == len(old) and x - diagonal == len(new):
                return [*rows, row]
            if steps > max_steps:
                return None
        rows.append(row)
        before = row
    raise AssertionError("deleting all lines and inserting all lines always succeeds")


def _is_insertion(before: array[int], i: int) -> bool:
    """Whether an insertion leads further along the diagonal than a deletion."""
    return i == 0 or (i < len(before) and before[i - 1] < before[i])


def _edits(trace: list[array[int]], x: int, y: int) -> list[Change]:
    """The insertions and deletions, of one line each, that lead to ``(x, y)``, in order."""
    edits: list[Change] = []
    for number in range(len(trace) - 1, 0, -1):
        before = trace[number - 1]
        diagonal = x - y
        i = (diagonal + number) // 2
        if _is_insertion(before, i):
            x = before[i]
            y = x - diagonal - 1
            edits.append(Change(x, x, y, y + 1))
        else:
            x = before[i - 1]
            y = x - diagonal + 1
            edits.append(Change(x, x + 1, y, y))
    edits.reverse()
    return edits


def _joined(edits: Iterator[Change]) -> list[Change]:
    """Joins adjacent edits into one change."""
    changes: list[Change] = []
    for edit in edits:
        last = changes[-1] if changes else None
        if last and (last.old_end, last.new_end) == (edit.old_start, edit.new_start):
            changes[-1] = Change(last.old_start, edit.old_end, last.new_start, edit.new_end)
        else:
            changes.append(edit)
    return changes


def _hunks(changes: list[Change]) -> Iterator[list[Change]]:
    """Groups changes whose context lines touch."""
    hunk = [changes[0]]
    for before, change in pairwise(changes):
        if change.old_start - before.old_end > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(change)
    yield hunk


def _hunk_lines(old: Sequence[str], new: Sequence[str], hunk: list[Change]) -> list[str]:
    first, last = hunk[0], hunk[-1]
    before = min(CONTEXT_LINES, first.old_start)
    after = min(CONTEXT_LINES, len(old) - last.old_end)
    old_range = _range(first.old_start - before, last.old_end + after)
    new_range = _range(first.new_start - before, last.new_end + after)
    lines = [f"@@ -{old_range} +{new_range} @@"]
    place = first.old_start - before
    for change in hunk:
        lines += [f" {line}" for line in old[place : change.old_start]]
        lines += [f"-{line}" for line in old[change.old_start : change.old_end]]
        lines += [f"+{line}" for line in new[change.new_start : change.new_end]]
        place = change.old_end
    lines += [f" {line}" for line in old[place : last.old_end + after]]
    return lines


def _range(start: int, end: int) -> str:
    """The range as in a hunk header: counted from 1; an empty one names the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
