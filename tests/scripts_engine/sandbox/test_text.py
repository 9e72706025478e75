"""string.split, string.trim, html.escape and inspect."""

from __future__ import annotations

import html
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .conftest import run_in

TEXTS = st.text(string.ascii_letters + ",;é\0 \"'<>&\\\n", max_size=40)
# Values as JSON, which FromJson turns into tables; NaN and infinities have tests of their own.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        ("('a,b,,c'):split(',')", ["a", "b", "", "c"]),
        ("string.split('', ',')", [""]),
        ("string.split(',', ',')", ["", ""]),
        ("string.split('a', ',')", ["a"]),
        ("string.split('a.b', '.')", ["a", "b"]),
        ("string.split('a%.b', '%.')", ["a", "b"]),
        ("string.split('a::b:c', '::')", ["a", "b:c"]),
        ("string.split('a,b,c', ',', 1)", ["a,b,c"]),
        ("string.split('a,b,c', ',', 2)", ["a", "b,c"]),
        ("string.split('a,b,c', ',', 9)", ["a", "b", "c"]),
        ("string.split('a,b', ',', math.huge)", ["a", "b"]),
        (r"string.split('a\0b', '\0')", ["a", "b"]),
    ],
)
def test_a_string_is_split_at_a_plain_separator(evaluate, call, parts):
    assert json.loads(evaluate(f"return {call}")) == parts


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("string.split('a', '')", "string.split: the separator must not be empty"),
        ("string.split('a')", "string.split: sep: string expected, got nil"),
        ("string.split(nil, ',')", "string.split: s: string expected, got nil"),
        ("('a'):split(',', -1)", "string.split: max must be a whole number of at least 1"),
        ("('a'):split(',', 1.5)", "string.split: max must be a whole number of at least 1"),
        ("('a'):split(',', 0/0)", "string.split: max must be a whole number of at least 1"),
        ("string.trim(5)", "string.trim: s: string expected, got number"),
        ("html.escape({})", "html.escape: s: string expected, got table"),
    ],
)
def test_a_wrong_argument_is_named(fail, call, message):
    assert fail(f"local x = {call}") == f"demo:1: {message}"


@given(text=TEXTS, separator=TEXTS.filter(bool))
def test_split_and_concat_give_the_string_back(shared_pool, text, separator):
    source = """
        local text, separator = params.get("body"), params.get("query")
        local parts = text:split(separator)
        return ToJson{ table.concat(parts, separator) == text, #parts }
    """
    params = {"body": text.encode(), "query": separator.encode()}
    body = run_in(shared_pool, source, params=params).reply.body
    assert json.loads(body) == [True, len(text.split(separator))]


@pytest.mark.parametrize(
    ("text", "trimmed"),
    [(" a b\t\n", "a b"), ("", ""), (" \v\f\r", ""), ("a", "a"), ("\0 ", "\0"), ("  é", "é")],
)
def test_white_space_is_trimmed_at_both_ends(evaluate, text, trimmed):
    source = "return params.get('body'):trim()"
    assert evaluate(source, params={"body": text.encode()}).decode() == trimmed


@given(text=TEXTS)
def test_escaped_html_shows_the_same_text_and_has_no_markup(shared_pool, text):
    source = "return html.escape(params.get('body'))"
    body = run_in(shared_pool, source, params={"body": text.encode()}).reply.body.decode()
    assert html.unescape(body) == text
    assert not set(body) & set("<>\"'")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("nil", "nil"),
        ("true", "true"),
        ("null", "null"),
        ("7", "7"),
        ("2.5", "2.5"),
        ("0/0", "nan"),
        ("-1/0", "-inf"),
        (r"'a\"\n\0é'", r'"a\"\n\x00é"'),
        (r"'\xff'", r'"\xff"'),
        ("print", "function"),
        ("coroutine.create(print)", "thread"),
        ("{}", "{}"),
        ("array{}", "{}"),
        ("{1, {2}}", "{\n  1,\n  {\n    2,\n  },\n}"),
        ("{1, nil, 3}", "{\n  1,\n  nil,\n  3,\n}"),
        (
            "{b = 1, a = 2, [true] = 3, [0.5] = 4, ['x y'] = 5}",
            '{\n  [0.5] = 4,\n  a = 2,\n  b = 1,\n  ["x y"] = 5,\n  [true] = 3,\n}',
        ),
        ("{[{}] = 1, [print] = 2}", "{\n  [function] = 2,\n  [table] = 1,\n}"),
        ("setmetatable({1}, {__tostring = error, __pairs = error, __index = error})", "{\n  1,\n}"),
    ],
)
def test_any_value_can_be_inspected(evaluate, value, text):
    assert evaluate(f"return inspect({value})").decode() == text


def test_a_table_in_itself_is_shown_as_a_cycle(evaluate):
    source = "local t = {} t.t, t.u = t, {t} return inspect({t, t})"
    once = "  {\n    t = <cycle>,\n    u = {\n      <cycle>,\n    },\n  },\n"
    assert evaluate(source).decode() == "{\n" + once * 2 + "}"


def test_values_that_are_too_deep_long_or_large_are_marked(evaluate):
    assert evaluate("return inspect{{{{{{{{{}}}}}}}}}").decode().count("{") == 9
    assert b"{\xe2\x80\xa6}" in evaluate("return inspect{{{{{{{{{1}}}}}}}}}")
    assert (
        evaluate("local t = {} for i = 1, 1005 do t[i] = 1 end return inspect(t)")
        .decode()
        .endswith("  … 5 more\n}")
    )
    large = evaluate("return inspect(('é'):rep(1e6))").decode()
    assert large.endswith("é…")
    assert 65530 < len(large.encode()) < 65545


@given(value=VALUES)
def test_inspect_never_raises(shared_pool, value):
    source = "return inspect(FromJson(params.get('body')))"
    body = json.dumps(value).encode()
    assert run_in(shared_pool, source, params={"body": body}).error is None
