"""FromJson and ToJson, compared with Python's json."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts_engine.sandbox.parent.pool import SandboxPool
from tests.examples import examples

from .conftest import run_in

ROUND_TRIP = "return ToJson(FromJson(params.get('body')))"

integers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | integers | floats | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=30,
)


def same(a: object, b: object) -> bool:
    """Whether two values are equal, with numbers of the same type and zeros of the same sign."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


@settings(max_examples=examples(300))
@given(value=values, ascii_only=st.booleans(), indent=st.sampled_from([None, 1, 4]))
def test_any_document_survives_a_round_trip(shared_pool: SandboxPool, value, ascii_only, indent):
    document = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    reply = run_in(shared_pool, ROUND_TRIP, params={"body": document}).reply
    assert same(json.loads(reply.body), value)


@settings(max_examples=examples(200))
@given(value=values)
def test_pretty_text_holds_the_same_value(shared_pool: SandboxPool, value):
    source = "return ToJson(FromJson(params.get('body')), {pretty = true})"
    reply = run_in(shared_pool, source, params={"body": json.dumps(value).encode()}).reply
    assert same(json.loads(reply.body), value)


@settings(max_examples=examples(300))
@given(value=floats)
def test_a_float_is_written_with_the_fewest_digits_that_restore_it(shared_pool: SandboxPool, value):
    reply = run_in(shared_pool, ROUND_TRIP, params={"body": repr(value).encode()}).reply
    shortest = next(text for n in range(1, 18) if float(text := f"{value:.{n}g}") == value)
    written = reply.body.decode()
    assert written.removesuffix(".0") in (shortest, f"{value:.15g}", f"{value:.16g}")
    assert same(float(written), value)


@settings(max_examples=examples(300))
@given(
    document=st.binary(max_size=40)
    | st.text('[]{}:,"\\ -+.0123eEtrufalsn', max_size=12).map(str.encode)
)
def test_json_refused_by_python_is_refused_without_hanging(shared_pool: SandboxPool, document):
    outcome = run_in(shared_pool, ROUND_TRIP, params={"body": document})
    assert outcome.kind in ("succeeded", "failed")
    assert (outcome.kind == "succeeded") <= is_json(document)


def is_json(document: bytes) -> bool:
    try:
        json.loads(document.decode(), parse_constant=float.fromhex)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("document", "written"),
    [
        ("[]", "[]"),
        ("{}", "{}"),
        ("[[],{}]", "[[],{}]"),
        ('{"a":[],"b":{}}', '{"a":[],"b":{}}'),
        ("[null]", "[null]"),
        ('{"a":null}', '{"a":null}'),
        ("null", "null"),
        (" \t\r\n1 ", "1"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1.0", "1.0"),
        ("1e2", "100.0"),
        ("-0.0", "-0.0"),
        ("1E-2", "0.01"),
        ("5e-324", "5e-324"),
        ("0.1", "0.1"),
        ('"\\u00e9\\ud83d\\ude00\\/"', '"é😀/"'),
        ('"\\b\\f\\n\\r\\t\\"\\\\"', '"\\b\\f\\n\\r\\t\\"\\\\"'),
        ('"\\u0000\\u001f"', '"\\u0000\\u001f"'),
        ('{"a":1,"a":2}', '{"a":2}'),
        ('{"b":1,"a":2}', '{"a":2,"b":1}'),
        ('{"":1}', '{"":1}'),
        ("[" * 128 + "]" * 128, "[" * 128 + "]" * 128),
    ],
)
def test_a_document_is_read_and_written_back(evaluate, document, written):
    assert evaluate(ROUND_TRIP, params={"body": document.encode()}) == written.encode()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"", "unexpected end at line 1 column 1"),
        (b"  \n ", "unexpected end at line 2 column 2"),
        (b"[1,\n 2,]", "unexpected ']' at line 2 column 4"),
        (b'{"a":1,}', "unexpected '}' at line 1 column 8"),
        (b"{a:1}", "unexpected 'a' at line 1 column 2"),
        (b"{'a':1}", "unexpected ''' at line 1 column 2"),
        (b'{"a" 1}', "unexpected '1' at line 1 column 6"),
        (b"[1 2]", "unexpected '2' at line 1 column 4"),
        (b"1 2", "unexpected '2' at line 1 column 3"),
        (b"[1", "unexpected end at line 1 column 3"),
        (b"nul", "unexpected 'n' at line 1 column 1"),
        (b"True", "unexpected 'T' at line 1 column 1"),
        (b"NaN", "unexpected 'N' at line 1 column 1"),
        (b"Infinity", "unexpected 'I' at line 1 column 1"),
        (b"-", "unexpected end at line 1 column 2"),
        (b"+1", "unexpected '+' at line 1 column 1"),
        (b".5", "unexpected '.' at line 1 column 1"),
        (b"1.", "unexpected end at line 1 column 3"),
        (b"1.e1", "unexpected 'e' at line 1 column 3"),
        (b"1e", "number with a broken exponent at line 1 column 1"),
        (b"01", "number with a leading zero at line 1 column 1"),
        (b"-01", "number with a leading zero at line 1 column 1"),
        (b"0x10", "unexpected 'x' at line 1 column 2"),
        (b"9223372036854775808", "integer out of the 64-bit range at line 1 column 1"),
        (b"-9223372036854775809", "integer out of the 64-bit range at line 1 column 1"),
        (b"1e400", "number out of range at line 1 column 1"),
        (b'"abc', "unterminated string at line 1 column 5"),
        (b'"a\nb"', "control character in a string at line 1 column 3"),
        (b'"a\x00b"', "control character in a string at line 1 column 3"),
        (b'"\\x"', "unknown escape in a string at line 1 column 2"),
        (b'"\\u12"', "\\u without four hexadecimal digits at line 1 column 2"),
        (b'"\\ud800"', "lone surrogate in a string at line 1 column 2"),
        (b'"\\udc00\\ud800"', "lone surrogate in a string at line 1 column 2"),
        (b'"\\ud800\\u0041"', "lone surrogate in a string at line 1 column 2"),
        (b'"\xff"', "invalid UTF-8 at line 1 column 2"),
        (b'"\xed\xa0\x80"', "invalid UTF-8 at line 1 column 2"),
        (b'"\xc0\x80"', "invalid UTF-8 at line 1 column 2"),
        ('["é", é]'.encode(), "unexpected 'é' at line 1 column 7"),
        (b"\xef\xbb\xbf[]", "unexpected byte order mark at line 1 column 1"),
        (b"[]\x00", "unexpected byte 0x00 at line 1 column 3"),
        (b"[1]\x0c", "unexpected byte 0x0C at line 1 column 4"),
        (b"[" * 129, "nested deeper than 128 levels at line 1 column 129"),
        (b"/* */ 1", "unexpected '/' at line 1 column 1"),
    ],
)
def test_invalid_json_is_refused_with_line_and_column(fail, document, message):
    failed = fail("local x = FromJson(params.get('body'))", params={"body": document})
    assert failed == f"demo:1: FromJson: {message}"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("{}", "[]"),
        ("array{}", "[]"),
        ("object{}", "{}"),
        ("{1, 'a', true, null}", '[1,"a",true,null]'),
        ("{b = 1, a = {c = {}}}", '{"a":{"c":[]},"b":1}'),
        ("nil", "null"),
        ("1/3", "0.3333333333333333"),
        ("10 / 2", "5.0"),
        ("2^53", "9007199254740992.0"),
        ("1e15", "1e+15"),
        ("'é\\0\\127'", '"é\\u0000\x7f"'),
        ("math.mininteger", "-9223372036854775808"),
        ("setmetatable({a = 1}, {__index = {b = 2}})", '{"a":1}'),
        ("setmetatable({1, 2}, {__len = function() return 7 end})", "[1,2]"),
    ],
)
def test_a_lua_value_is_written(evaluate, value, written):
    assert evaluate(f"return ToJson({value})") == written.encode()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{1, nil, 3}", "an array has gaps"),
        ("{[1] = 1, [3] = 3, [4] = 4}", "gaps or other keys"),
        ("{1, a = 2}", 'an array has the key "a"'),
        ("{[2] = 'x'}", "an object has a key that is a number"),
        ("{[1.5] = 'x'}", "an object has a key that is a number"),
        ("{[true] = 1}", "an object has a key that is a boolean"),
        ("array{a = 1}", 'an array has the key "a"'),
        ("object{1}", "an object has a key that is a number"),
        ("0/0", "NaN has no JSON form"),
        ("{1/0}", "infinity has no JSON form (at [1])"),
        ("{a = {b = {-1/0}}}", "infinity has no JSON form (at a.b[1])"),
        ("print", "a function has no JSON form"),
        ("{co = coroutine.create(print)}", "a thread has no JSON form (at co)"),
        ("'\\xff'", "a string is not valid UTF-8"),
        ("{['\\xff'] = 1}", "a string is not valid UTF-8"),
    ],
)
def test_a_value_without_a_json_form_is_refused(fail, value, message):
    failed = fail(f"local x = ToJson({value})")
    assert failed.startswith("demo:1: ToJson: ")
    assert message in failed


def test_a_cycle_is_refused_as_a_cycle(fail):
    message = fail("local t = {}\nt.a = {t}\nlocal x = ToJson(t)")
    assert message.startswith("demo:3: ToJson: a table holds itself")


def test_a_deep_value_is_refused(fail):
    source = "local t = {}\nfor _ = 1, 128 do t = {t} end\nlocal x = ToJson(t)"
    assert "nested deeper than 128 levels" in fail(source)


def test_a_table_may_appear_twice(evaluate):
    assert evaluate("local t = {1}\nreturn {t, t}") == b"[[1],[1]]"


def test_pretty_text(evaluate):
    written = evaluate("return ToJson({a = {1, {}}, b = object{}}, {pretty = true})")
    assert written.decode() == '{\n  "a": [\n    1,\n    []\n  ],\n  "b": {}\n}'


def test_marks_can_be_changed(evaluate):
    assert evaluate("return {array(object{}), object(array{})}") == b"[[],{}]"


def test_an_emptied_object_stays_one(evaluate):
    assert evaluate("local t = FromJson('{\"a\":1}')\nt.a = nil\nreturn t") == b"{}"


def test_null_is_a_value_of_its_own(evaluate):
    source = """
        local t = FromJson('{"a": null}')
        return {t.a == null, t.a == nil, t.b == nil, tostring(t.a), #FromJson('[null,null]')}
    """
    assert evaluate(source) == b'[true,false,true,"null",2]'


def test_numbers_keep_their_type(evaluate):
    source = """
        local t = FromJson('[1, 1.0, 1e0]')
        return {math.type(t[1]), math.type(t[2]), math.type(t[3])}
    """
    assert evaluate(source) == b'["integer","float","float"]'


def test_a_decoded_table_may_be_given_a_metatable(evaluate):
    source = """
        local Order = {__index = {total = function(self) return self.price * self.count end}}
        return setmetatable(FromJson('{"price": 2, "count": 3}'), Order):total()
    """
    assert evaluate(source) == b"6"


def test_a_document_of_1_mib_is_read_and_written_in_good_time(run):
    item = {
        "id": 12345,
        "name": 'Ünïcode "quoted" text',
        "price": 12.5,
        "tags": ["a", "b"],
        "x": None,
    }
    document = json.dumps([item] * 9900).encode()
    assert 2**20 * 0.9 < len(document) < 2**20 * 1.1
    outcome = run("return #ToJson(FromJson(params.get('body')))", params={"body": document})
    assert outcome.kind == "succeeded"
    assert outcome.cpu_seconds < 3
