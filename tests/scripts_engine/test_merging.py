"""Merging two changed sources line by line, in bounded work."""

from difflib import SequenceMatcher
from typing import Any

import pytest

from scripts_engine import line_diff as merging
from scripts_engine.admin.scripts import drafts as conflict
from scripts_engine.line_diff import MAX_COMPARED_LINES

REPEATED = ["end"] * (MAX_COMPARED_LINES - 10)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """To how many places of the other text a line is compared, at most, in each comparison."""
    found: list[int] = []

    class Counting(SequenceMatcher[Any]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            b2j: dict[str, list[int]] = vars(self)["b2j"]
            found.append(max(map(len, b2j.values()), default=0))

    for module in (merging, conflict):
        monkeypatch.setattr(module, "SequenceMatcher", Counting)
    return found


def test_both_changes_are_merged_between_lines_that_repeat() -> None:
    base = ["a", *REPEATED, "z"]
    mine, theirs = ["b", *base[1:]], [*base[:-1], "y"]
    merged = merging.merge(*map("\n".join, (base, mine, theirs)), their_name="theirs")

    assert merged == merging.Merged("\n".join(["b", *REPEATED, "y"]), 0)


def test_lines_that_repeat_are_compared_to_few_places_in_a_merge(places: list[int]) -> None:
    texts = (["a", *REPEATED, "z"], ["b", *REPEATED, "y"], ["c", *REPEATED, "x"])
    merging.merge(*map("\n".join, texts), their_name="theirs")

    assert len(places) == 2
    assert max(places) <= MAX_COMPARED_LINES // 100 + 1


def test_lines_that_repeat_are_compared_to_few_places_side_by_side(places: list[int]) -> None:
    sources = ("\n".join([first, *REPEATED]) for first in ("a", "b", "c"))
    theirs, yours, base = sources
    conflict._compared("Theirs", theirs, yours, base)

    assert len(places) == 3
    assert max(places) <= MAX_COMPARED_LINES // 100 + 1
