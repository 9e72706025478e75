"""Diffs of sources, and their bounds on time and memory."""

import random
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts_engine import line_diff as module
from scripts_engine.line_diff import unified_diff
from scripts_engine.sandbox import MAX_SOURCE_BYTES
from tests.work import counted_calls

MAX_CALLS = 3_000_000
MAX_MEMORY_BYTES = 24 * 1024 * 1024

Texts = tuple[list[str], list[str]]


def diff(old: list[str], new: list[str]) -> list[str]:
    return unified_diff(old, new, old_name="version 1", new_name="version 2")


def patched(old: list[str], lines: list[str]) -> list[str]:
    """The old lines with the hunks of a diff applied, which must fit them."""
    result: list[str] = []
    place = 0
    for line in lines[2:]:
        if header := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start = int(header[1]) - (header[2] != "0")
            result += old[place:start]
            place = start
            assert len(result) == int(header[3]) - (header[4] != "0")
            continue
        if line[0] != "+":
            assert old[place] == line[1:]
            place += 1
        if line[0] != "-":
            result.append(line[1:])
    return result + old[place:]


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
    longest=st.sampled_from([0, 3, 100]),
)
def test_a_diff_makes_the_new_text_of_the_old(old: list[str], new: list[str], longest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_COMPARED_LINES", longest)
        assert patched(old, diff(old, new)) == new


def test_a_long_changed_passage_is_one_change_between_common_ends() -> None:
    numbers = [str(number) for number in range(2_000)]
    old, new = ["head", *numbers, "tail"], ["head", *numbers[::-1], "tail"]

    lines = diff(old, new)

    assert lines[2:4] == ["@@ -1,2002 +1,2002 @@", " head"]
    assert [line[0] for line in lines[4:]] == [*["-"] * 2_000, *["+"] * 2_000, " "]


@pytest.mark.parametrize(
    "texts",
    [
        interleaved(module.MAX_COMPARED_LINES // 2),
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
