"""Merges two changed texts line by line, with the conflict markers of git."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

OURS, MIDDLE, THEIRS = "<<<<<<< yours", "=======", ">>>>>>> server"

_Change = tuple[int, int, list[str]]
"""The lines of the base from a start to an end, and what replaces them."""


@dataclass(frozen=True, slots=True)
class Merged:
    text: str
    conflicts: int


def merge(base: str, mine: str, theirs: str) -> Merged:
    """Merges what both changed of the base; places that both changed differently are conflicts."""
    old = base.splitlines(keepends=True)
    sides = [_changes(old, text.splitlines(keepends=True)) for text in (mine, theirs)]
    lines: list[str] = []
    conflicts = place = 0
    for start, end in _regions([change for side in sides for change in side]):
        one, other = (_replaced(old, start, end, side) for side in sides)
        lines += old[place:start]
        before = old[start:end]
        if one in (before, other):
            lines += other
        elif other == before:
            lines += one
        else:
            conflicts += 1
            lines += _marked(one, other)
        place = end
    return Merged("".join([*lines, *old[place:]]), conflicts)


def merge_without_base(mine: str, theirs: str) -> Merged:
    """Takes lines that only one side has; lines that differ are conflicts."""
    old = mine.splitlines(keepends=True)
    lines: list[str] = []
    conflicts = place = 0
    for start, end, new in _changes(old, theirs.splitlines(keepends=True)):
        lines += old[place:start]
        before = old[start:end]
        if before and new:
            conflicts += 1
            lines += _marked(before, new)
        else:
            lines += before + new
        place = end
    return Merged("".join([*lines, *old[place:]]), conflicts)


def conflict_line(text: str) -> int | None:
    """The number of the first line that is a conflict marker."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith((OURS, THEIRS)):
            return number
    return None


def _marked(one: list[str], other: list[str]) -> list[str]:
    return [f"{OURS}\n", *_ended(one), f"{MIDDLE}\n", *_ended(other), f"{THEIRS}\n"]


def _ended(lines: list[str]) -> list[str]:
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def _changes(old: Sequence[str], new: list[str]) -> list[_Change]:
    matcher = SequenceMatcher(None, old, new)
    return [
        (start, end, new[first:last])
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def _regions(changes: Sequence[_Change]) -> list[tuple[int, int]]:
    """The lines of the base that either side touches; changes that meet are one region."""
    regions: list[tuple[int, int]] = []
    for start, end, _ in sorted(changes, key=lambda change: change[:2]):
        if regions and start <= regions[-1][1]:
            regions[-1] = regions[-1][0], max(end, regions[-1][1])
        else:
            regions.append((start, end))
    return regions


def _replaced(old: Sequence[str], start: int, end: int, side: Sequence[_Change]) -> list[str]:
    lines: list[str] = []
    place = start
    for first, last, new in side:
        if start <= first and last <= end:
            lines += [*old[place:first], *new]
            place = last
    return [*lines, *old[place:end]]
