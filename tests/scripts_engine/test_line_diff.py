"""Diffs of sources, and their bounds on time and memory."""

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts_engine.line_diff import Change, find_changes, unified_diff
from scripts_engine.sandbox.limits import MAX_SOURCE_BYTES
from tests.work import counted_calls

MAX_CALLS = 2_000_000
MAX_MEMORY_BYTES = 24 * 1024 * 1024

Texts = tuple[list[str], list[str]]


def diff(old: list[str], new: list[str]) -> list[str]:
    return unified_diff(old, new, old_name="version 1", new_name="version 2")


def patched(old: list[str], new: list[str], changes: list[Change]) -> list[str]:
    """The old lines with the changes made."""
    lines = list(old)
    for change in reversed(changes):
        lines[change.old_start : change.old_end] = new[change.new_start : change.new_end]
    return lines


def interleaved(pairs: int) -> Texts:
    """Every other line is common to both, in the same order, and no two in a row are.

    A search for the longest common block finds one line at a time, at the beginning of all that
    is left.
    """
    chosen = random.Random(1)
    common = [f"{chosen.randrange(100)}" for _ in range(pairs)]
    old = [line for each in common for line in (each, "a")]
    new = [line for each in common for line in (each, "b")]
    return old, new


def shuffled() -> Texts:
    chosen = random.Random(2)
    symbols = [chr(code) for code in range(33, 127)]
    old, new = (
        [chosen.choice(symbols) for _ in range(MAX_SOURCE_BYTES // 2)] for _ in ("old", "new")
    )
    return old, new


def test_a_diff_reads_as_diff_u_writes_it() -> None:
    old = [f"line {number}" for number in range(1, 21)]
    new = ["first", *old[1:9], "between", *old[9:18], *old[19:]]

    assert diff(old, new) == [
        "--- version 1",
        "+++ version 2",
        "@@ -1,4 +1,4 @@",
        "-line 1",
        "+first",
        " line 2",
        " line 3",
        " line 4",
        "@@ -7,6 +7,7 @@",
        " line 7",
        " line 8",
        " line 9",
        "+between",
        " line 10",
        " line 11",
        " line 12",
        "@@ -16,5 +17,4 @@",
        " line 16",
        " line 17",
        " line 18",
        "-line 19",
        " line 20",
    ]


def test_equal_texts_have_no_diff() -> None:
    assert diff(["a", "b"], ["a", "b"]) == diff([], []) == []


def test_a_first_text_is_all_new() -> None:
    assert diff([], ["a", "b"])[2:] == ["@@ -0,0 +1,2 @@", "+a", "+b"]


def test_changes_with_six_lines_between_them_are_one_hunk_and_with_seven_two() -> None:
    def hunks(between: int) -> int:
        kept = [f"kept {number}" for number in range(between)]
        lines = diff(["a", *kept, "b"], ["A", *kept, "B"])
        return sum(line.startswith("@@") for line in lines)

    assert (hunks(6), hunks(7)) == (1, 2)


@given(
    old=st.lists(st.sampled_from("abc"), max_size=14),
    new=st.lists(st.sampled_from("abc"), max_size=14),
    max_steps=st.sampled_from([0, 3, 20, 100_000]),
)
def test_the_changes_make_the_new_text_of_the_old(
    old: list[str], new: list[str], max_steps: int
) -> None:
    assert patched(old, new, find_changes(old, new, max_steps=max_steps)) == new


def test_as_few_lines_as_possible_change() -> None:
    old, new = list("abcabba"), list("cbabac")

    changes = find_changes(old, new)

    assert sum(change.old_end - change.old_start for change in changes) == 3
    assert sum(change.new_end - change.new_start for change in changes) == 2


def test_very_different_texts_get_one_change_between_common_ends() -> None:
    old, new = (
        ["head", *map(str, range(100)), "tail"],
        ["head", *map(str, range(99, -1, -1)), "tail"],
    )

    assert find_changes(old, new, max_steps=500) == [Change(1, 101, 1, 101)]


@pytest.mark.parametrize(
    "texts",
    [
        interleaved(1_000),
        interleaved(MAX_SOURCE_BYTES // 5),
        shuffled(),
        (["a"] * (MAX_SOURCE_BYTES // 2), ["a", "b"] * (MAX_SOURCE_BYTES // 4)),
    ],
    ids=["interleaved", "interleaved-full", "shuffled", "every-other"],
)
def test_no_two_texts_take_more_than_a_bounded_amount_of_work(texts: Texts) -> None:
    with counted_calls() as work:
        lines = diff(*texts)

    assert lines
    assert work.calls < MAX_CALLS


@pytest.mark.slow
def test_the_memory_of_a_diff_is_bounded() -> None:
    old, new = shuffled()
    tracemalloc.start()
    try:
        diff(old, new)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < MAX_MEMORY_BYTES
