"""The strict JSON reader that ``POST /session``, GraphQL and the admin's *Try it* share."""

import pytest

from core.http.body import MalformedJson, NotAnObject, parse_json_object


def test_an_object_in_utf_8_is_read() -> None:
    assert parse_json_object(' {"name": "één", "n": [1, 2.5, null]} '.encode()) == {
        "name": "één",
        "n": [1, 2.5, None],
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a": 1} {}',
        b"{'a': 1}",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": "\xff"}',
        b"\xef\xbb\xbf{}",
        '{"a": 1}'.encode("utf-16"),
        b"[" * 200_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
    ],
)
def test_anything_but_json_in_utf_8_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedJson, match="not JSON in UTF-8"):
        parse_json_object(body)


@pytest.mark.parametrize("body", [b"null", b"[]", b"[{}]", b'"text"', b"1"])
def test_other_json_values_are_not_an_object(body: bytes) -> None:
    with pytest.raises(NotAnObject, match="one JSON object"):
        parse_json_object(body)
