"""url.parse, url.build_query, and the values of a repeated name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .conftest import run_in

TEXTS = st.text(max_size=20)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        (
            "HTTPS://u:p@Shop.Example:8443/a/b;c?x=1&y=/?#top?",
            {
                "scheme": "https",
                "user": "u:p",
                "host": "shop.example",
                "port": 8443,
                "path": "/a/b;c",
                "query": "x=1&y=/?",
                "fragment": "top?",
            },
        ),
        ("http://h", {"scheme": "http", "host": "h", "path": ""}),
        ("http://h:?#", {"scheme": "http", "host": "h", "path": "", "query": "", "fragment": ""}),
        (
            "http://[2001:DB8::1]:80/",
            {"scheme": "http", "host": "[2001:db8::1]", "port": 80, "path": "/"},
        ),
        ("//h/x", {"host": "h", "path": "/x"}),
        ("file:///etc", {"scheme": "file", "host": "", "path": "/etc"}),
        ("mailto:a@b.example", {"scheme": "mailto", "path": "a@b.example"}),
        ("urn:isbn:0", {"scheme": "urn", "path": "isbn:0"}),
        ("../a:b?%41", {"path": "../a:b", "query": "%41"}),
        ("", {"path": ""}),
    ],
)
def test_a_url_is_split_as_rfc_3986_says(evaluate, url, parts):
    body = evaluate("return url.parse(params.get('body'))", params={"body": url.encode()})
    assert json.loads(body) == parts


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://h/a b", "the character at byte 11 must be percent-encoded"),
        ("http://h/é", "the character at byte 10 must be percent-encoded"),
        ("http://trusted\\@evil/", "the character at byte 15 must be percent-encoded"),
        ("%41%4", "the character at byte 4 must be percent-encoded"),
        ("http://a@b@c/", "the host or the port is not valid"),
        ("http://h:1:2/", "the host or the port is not valid"),
        ("http://h:-1/", "the host or the port is not valid"),
        ("http://[::1/", "the host or the port is not valid"),
        ("http://[::1]evil/", "the host or the port is not valid"),
        ("http://h:65536/", "the port is over 65535"),
        ("http://h/[", "a bracket outside the host must be percent-encoded"),
        ("a#b#c", "a second '#'"),
        ("1a:b", "the scheme is not valid"),
    ],
)
def test_anything_else_is_refused(fail, url, problem):
    source = "local x = url.parse(params.get('body'))"
    assert fail(source, params={"body": url.encode()}) == f"demo:1: url.parse: {problem}"


def test_all_values_of_a_repeated_name_are_kept_on_request(evaluate):
    source = "return url.parse_query('tag=a&page=2&tag=b&tag', {multi = true})"
    assert json.loads(evaluate(source)) == {"tag": ["a", "b", ""], "page": ["2"]}


def test_a_query_is_built_in_the_order_of_its_names(evaluate):
    source = "return url.build_query{b = 'x y', a = {3, 1.5, true}, none = {}, ['c&'] = ''}"
    assert evaluate(source) == b"a=3&a=1.5&a=true&b=x%20y&c%26="


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("5", "table expected, got number"),
        ("{1}", "name: string expected, got number"),
        ("{a = 0/0}", "a: a finite number expected"),
        ("{a = {1/0}}", "a: a finite number expected"),
        ("{a = null}", "a: null has no text"),
        ("{a = {x = 1}}", "a: the table is not an array"),
        ("{a = print}", "a: string, number, boolean or an array of them expected, got function"),
        ("{a = {{}}}", "a: string, number, boolean or an array of them expected, got table"),
    ],
)
def test_a_query_without_a_text_is_refused(fail, argument, problem):
    message = fail(f"local x = url.build_query({argument})")
    assert message == f"demo:1: url.build_query: {problem}"


@given(values=st.dictionaries(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), max_size=5))
def test_a_query_that_was_built_is_parsed_to_the_same_values(shared_pool, values):
    source = """
        local values = FromJson(params.get("body"))
        return url.parse_query(url.build_query(values), {multi = true})
    """
    body = run_in(shared_pool, source, params={"body": json.dumps(values).encode()}).reply.body
    assert json.loads(body) == values


FORM = b"application/x-www-form-urlencoded"


@pytest.mark.parametrize("content_type", [FORM, FORM.upper() + b" ; charset=utf-8", b""])
def test_a_form_is_decoded(evaluate, content_type):
    params = {"body": b"a=1&b=x+y&a=2", "content_type": content_type}
    assert evaluate("return params.form()", params=params) == b'{"a":"1","b":"x y"}'
    multi = evaluate("return params.form{multi = true}", params=params)
    assert multi == b'{"a":["1","2"],"b":["x y"]}'


def test_a_body_of_another_type_is_no_form(fail):
    params = {"body": b"a=1", "content_type": b"multipart/form-data; boundary=x"}
    assert fail("local x = params.form()", params=params).startswith(
        "demo:1: params.form: the content type is multipart/form-data; boundary=x; "
    )


def test_an_unknown_option_is_refused(fail):
    message = fail("local x = params.form{multy = true}")
    assert message == "demo:1: params.form: unknown option multy"


def test_a_json_body_is_decoded_to_a_new_value_each_time(evaluate):
    source = "params.json().a = 2 return params.json()"
    assert evaluate(source, params={"body": b'{"a": 1}'}) == b'{"a":1}'


def test_a_body_that_is_not_json_raises_the_position(fail):
    message = fail("local x = params.json()", params={"body": b'{"a": 1,}'})
    assert message == "demo:1: params.json: unexpected '}' at line 1 column 9"


def test_an_empty_body_is_not_json(fail):
    message = fail("local x = params.json()", params={"body": b""})
    assert message == "demo:1: params.json: the body is empty"
