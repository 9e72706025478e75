"""params: the request, as a script sees it."""

from __future__ import annotations

import pytest

HEADERS = [
    (b"Content-Type", b"text/plain"),
    (b"X-Tag", b"one"),
    (b"x-tag", b"two"),
]


def test_the_body_arrives_untouched(evaluate):
    body = bytes(range(256)) * 100
    assert evaluate("return params.get('body')", params={"body": body}) == body


@pytest.mark.parametrize(
    "name",
    ["method", "query", "content_type", "remote_addr", "run_id", "hook_id", "script_id", "org_id"],
)
def test_each_param_is_there(evaluate, name):
    assert evaluate(f"return params.get('{name}')", params={name: b"value"}) == b"value"


def test_an_absent_param_is_nil(evaluate):
    assert evaluate("return tostring(params.get('hook_id'))") == b"nil"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content-type", b"text/plain"),
        ("CONTENT-TYPE", b"text/plain"),
        ("X-Tag", b"one, two"),
        ("absent", b"nil"),
    ],
)
def test_a_header_is_found_by_any_case(evaluate, name, value):
    source = f"return tostring(params.header('{name}'))"
    assert evaluate(source, headers=HEADERS) == value


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        (b"a=1&b=2", "b", b"2"),
        (b"a=1&a=2", "a", b"1"),
        (b"a=x+y%20z", "a", b"x y z"),
        (b"a=%C3%A9", "a", "é".encode()),
        (b"%61=1", "a", b"1"),
        (b"a", "a", b""),
        (b"a=", "a", b""),
        (b"=1&a=2=3", "a", b"2=3"),
        (b"a=100%", "a", b"100%"),
        (b"&&a=1&", "a", b"1"),
        (b"", "a", b"nil"),
    ],
)
def test_a_query_parameter_is_decoded(evaluate, query, name, value):
    source = f"return tostring(params.query('{name}'))"
    assert evaluate(source, params={"query": query}) == value


def test_a_request_without_a_query_has_no_query_parameters(evaluate):
    assert evaluate("return tostring(params.query('a'))") == b"nil"


def test_a_run_never_sees_the_params_of_the_one_before(evaluate):
    source = "return tostring(params.get('body')) .. tostring(params.header('x'))"
    assert evaluate(source, params={"body": b"1"}, headers=[(b"X", b"2")]) == b"12"
    assert evaluate(source) == b"nilnil"
