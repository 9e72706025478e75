"""Differences for pages: words, and lines of a unified diff with their colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scripts_engine.line_diff import unified_diff

_KINDS = {"+": "added", "-": "removed", "@": "place"}
_HEADER_LINES = 2
# Each line is an HTML element: a hundred thousand of them take seconds to render.
MAX_LINES = 2_000


class DiffLine(NamedTuple):
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Diff:
    lines: list[DiffLine]
    hidden_lines: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed of an object; ``words`` are sentences."""

    words: list[str]
    diff: Diff


def diff_of_lines(lines: Sequence[str]) -> Diff:
    """The lines of a unified diff, without its header."""
    body = lines[_HEADER_LINES:]
    shown = [DiffLine(line, _KINDS.get(line[:1], "")) for line in body[:MAX_LINES]]
    return Diff(shown, hidden_lines=len(body) - len(shown))


def diff_of_sources(old: str, new: str, *, old_name: str, new_name: str) -> Diff:
    return diff_of_lines(
        unified_diff(old.splitlines(), new.splitlines(), old_name=old_name, new_name=new_name)
    )


def difference_of(text: str | None) -> Difference:
    """The text of ``Kind.difference``: sentences, then a unified diff where a source changed."""
    lines = (text or "").split("\n") if text else []
    start = next((at for at, line in enumerate(lines) if line.startswith("--- ")), len(lines))
    return Difference(lines[:start], diff_of_lines(lines[start:]))
