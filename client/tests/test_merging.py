"""Three-way merges of texts."""

import pytest

from moonhook_cli.merging import conflict_line, merge, merge_without_base

BASE = "one\ntwo\nthree\nfour\n"


@pytest.mark.parametrize(
    ("mine", "theirs", "merged"),
    [
        (BASE, "one\n2\nthree\nfour\n", "one\n2\nthree\nfour\n"),
        ("one\n2\nthree\nfour\n", BASE, "one\n2\nthree\nfour\n"),
        ("1\ntwo\nthree\nfour\n", "one\ntwo\nthree\n4\n", "1\ntwo\nthree\n4\n"),
        ("one\n2\nthree\nfour\n", "one\n2\nthree\nfour\n", "one\n2\nthree\nfour\n"),
        ("", BASE, ""),
    ],
    ids=["theirs", "mine", "both", "same", "mine-empty"],
)
def test_changes_of_different_lines_are_merged(mine: str, theirs: str, merged: str) -> None:
    result = merge(BASE, mine, theirs)

    assert result.text == merged
    assert result.conflicts == 0


def test_changes_of_the_same_line_are_a_conflict() -> None:
    result = merge("a\nb", "a\nmine", "a\ntheirs")

    assert result.conflicts == 1
    assert result.text == "a\n<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> server\n"
    assert conflict_line(result.text) == 2


def test_without_a_base_only_lines_that_differ_are_a_conflict() -> None:
    added = merge_without_base("a\nb\n", "a\nb\nc\n")
    changed = merge_without_base("a\nb\n", "a\nB\n")

    assert (added.text, added.conflicts) == ("a\nb\nc\n", 0)
    assert changed.conflicts == 1
