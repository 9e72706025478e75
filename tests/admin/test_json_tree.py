"""JSON bodies on a run's page: readable and unaltered."""

import html
import json
import re

import pytest

from scripts_engine.admin.runs.bodies import body_of, indented_json


def shown(body: str) -> str:
    """The text of the tree, without its markup."""
    tree = body_of(body.encode()).tree
    assert tree is not None
    return html.unescape(re.sub(r"<[^>]+>", " ", tree))


def test_objects_and_arrays_fold() -> None:
    tree = body_of(b'{"items": [{"sku": "TEA"}, 2]}').tree

    assert tree is not None
    assert tree.count("<details open>") == 3
    assert "2 items" in tree
    assert tree.count("1 member<") == 2


def test_numbers_stay_as_they_were_written() -> None:
    numbers = ["9007199254740993", "12.50", "1e400", "-0", "9" * 5000]

    assert shown(f"[{','.join(numbers)}]").split()[3:] == numbers


def test_repeated_names_are_kept_in_order() -> None:
    text = shown('{"b": 1, "a": 2, "b": 3}')

    assert re.findall(r'"(\w)"\s+(repeated)?\s*:\s+(\d)', text) == [
        ("b", "", "1"),
        ("a", "", "2"),
        ("b", "repeated", "3"),
    ]


def test_literals_and_empty_containers_are_shown() -> None:
    assert shown('[null, true, false, [], {}, ""]').split() == [
        "[…]", "6", "items", "null", "true", "false", "[]", "{}", '""',
    ]  # fmt: skip


def test_markup_in_names_and_values_is_text() -> None:
    tree = body_of(b'{"<img src=x>": "<script>alert(1)</script>"}').tree

    assert tree is not None
    assert "<img" not in tree
    assert "<script" not in tree
    assert "&lt;script&gt;" in tree


def test_half_a_surrogate_pair_is_shown_by_its_escape() -> None:
    body = body_of(rb'{"\ud800": "a\udfff"}')

    assert body.tree is not None
    assert "\\ud800" in body.tree
    body.tree.encode()


@pytest.mark.parametrize("body", [b"7", b'"text"', b"[NaN]", b"[Infinity]", b"\xef\xbb\xbf[1]"])
def test_only_json_objects_and_arrays_have_a_tree(body: bytes) -> None:
    assert (body_of(body).tree, body_of(body).indented) == (None, "")


def test_the_raw_text_is_unaltered() -> None:
    assert body_of(b' {"a" : 1.0, "a":\n2}').text == ' {"a" : 1.0, "a":\n2}'


@pytest.mark.parametrize(
    "body",
    [
        json.dumps([{"n": n, "text": 'a, {b}: [c] \\"'} for n in range(1000)]),
        "[" * 40 + "1.50" + "]" * 40,
    ],
    ids=["many", "deep"],
)
def test_a_tree_that_would_be_too_large_becomes_indented_text(body: str) -> None:
    shown = body_of(body.encode())

    assert shown.tree is None
    assert shown.indented.count("\n") > 40
    assert json.loads(shown.indented) == json.loads(body)


def test_indenting_changes_only_white_space() -> None:
    text = '{"a":[1.50,{"b":"x , y"}],"e":{},"f":[],"a":1e400}'

    assert indented_json(text) == (
        '{\n  "a": [\n    1.50,\n    {\n      "b": "x , y"\n    }\n  ],\n'
        '  "e": {},\n  "f": [],\n  "a": 1e400\n}'
    )


def test_indenting_deep_json_stays_small() -> None:
    text = "[" * 900 + "1," * 40_000 + "1" + "]" * 900

    assert len(indented_json(text)) < 4_000_000
    assert len(body_of(text.encode()).indented) == 100_000


def test_a_long_list_inside_starts_folded() -> None:
    tree = body_of(json.dumps({"all": list(range(101))}).encode()).tree

    assert tree is not None
    assert tree.count("<details open>") == 1
    assert tree.count("<details>") == 1
