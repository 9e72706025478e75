"""http, queue, store and secrets: the calls of a script to the worker, and the answers."""

from __future__ import annotations

import time
import uuid

import pytest

from scripts_engine.host.handler import RunHost
from scripts_engine.sandbox.contract import HOST_CALLS, CallNote, HostCallError
from scripts_engine.sandbox.limits import MAX_HOST_CALL_ERROR_CHARS, Limits

from .conftest import run_in


class Host:
    """Answers every call with the same value, and records the calls."""

    def __init__(self, answer=None):
        self.answer = answer
        self.calls = []

    def __call__(self, name, args, *, deadline, note):
        self.calls.append((name, args))
        self.seconds_left = deadline - time.monotonic()
        return self.answer


@pytest.mark.parametrize(
    ("call", "name", "args"),
    [
        (
            "http.get('http://a.example/')",
            "http.get",
            [{b"url": b"http://a.example/", b"headers": {}}],
        ),
        (
            "http.head('http://a.example/', {X = 1})",
            "http.head",
            [{b"url": b"http://a.example/", b"headers": {b"X": b"1"}}],
        ),
        (
            "http.delete('http://a.example/', {X = 'a'})",
            "http.delete",
            [{b"url": b"http://a.example/", b"headers": {b"X": b"a"}}],
        ),
        (
            "http.post('http://a.example/', 'text')",
            "http.post",
            [{b"url": b"http://a.example/", b"body": b"text", b"headers": {}}],
        ),
        (
            "http.put('http://a.example/', 'text', {X = 'a'})",
            "http.put",
            [{b"url": b"http://a.example/", b"body": b"text", b"headers": {b"X": b"a"}}],
        ),
        (
            "http.patch('http://a.example/')",
            "http.patch",
            [{b"url": b"http://a.example/", b"headers": {}}],
        ),
        (
            "http.request{url = 'u', method = 'PUT', json = {a = 1}, timeout = 2, headers = {X=1}}",
            "http.request",
            [
                {
                    b"method": b"PUT",
                    b"url": b"u",
                    b"body": b'{"a":1}',
                    b"timeout": 2,
                    b"headers": {b"X": b"1", b"Content-Type": b"application/json"},
                }
            ],
        ),
        (
            "http.request{url = 'u', json = {}, headers = {['content-type'] = 'application/x'}}",
            "http.request",
            [
                {
                    b"method": b"GET",
                    b"url": b"u",
                    b"body": b"[]",
                    b"headers": {b"content-type": b"application/x"},
                }
            ],
        ),
        ("store.get('k')", "store.get", [b"k"]),
        ("store.set('k', {1, null})", "store.set", [b"k", b"[1,null]", None]),
        ("store.set('k', 'v', 60)", "store.set", [b"k", b'"v"', 60]),
        ("store.set_if_absent('k', 1)", "store.set_if_absent", [b"k", b"1", None]),
        ("store.set_if_absent('k', 1, {ttl = 9})", "store.set_if_absent", [b"k", b"1", 9]),
        ("store.list('k', 5)", "store.list", [b"k", 5]),
        ("store.delete('k')", "store.delete", [b"k"]),
        ("store.increment('k')", "store.increment", [b"k", 1]),
        ("store.increment('k', -2)", "store.increment", [b"k", -2]),
        ("secrets.get('name')", "secrets.get", [b"name"]),
    ],
)
def test_a_call_reaches_the_host_with_its_arguments(run, call, name, args):
    host = Host()
    assert run(f"local x = {call}", host=host).error is None
    assert host.calls == [(name, args)]
    assert 0 < host.seconds_left <= 10


@pytest.mark.parametrize(
    ("answer", "expression", "value"),
    [
        (None, "tostring(x)", "nil"),
        (True, "tostring(x)", "true"),
        (False, "tostring(x)", "false"),
        (0, "tostring(x)", "0"),
        (-1, "tostring(x)", "-1"),
        (300, "tostring(x)", "300"),
        (-40000, "tostring(x)", "-40000"),
        (2**63 - 1, "tostring(x)", str(2**63 - 1)),
        (-(2**63), "tostring(x)", str(-(2**63))),
        (1.5, "tostring(x)", "1.5"),
        ("text", "x", "text"),
        (b"\xff" * 300, "tostring(#x)", "300"),
        (b"x" * 70000, "tostring(#x)", "70000"),
        ([1, [2, None, 3]], "tostring(x[2][3])", "3"),
        ({"status": 200, "headers": {"a": "b"}, "body": b"\x00"}, "x.headers.a", "b"),
        (list(range(1000)), "tostring(#x)", "1000"),
        ({str(n): n for n in range(1000)}, "tostring(x['999'])", "999"),
    ],
)
def test_an_answer_of_the_host_arrives(evaluate, answer, expression, value):
    source = f"local x = secrets.get('x')\nreturn {expression}"
    assert evaluate(source, host=Host(answer)).decode() == value


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ("'s', 'text'", [b"s", b"text", None, None, None]),
        ("'s'", [b"s", b"", None, None, None]),
        ("'s', null", [b"s", b"null", None, None, None]),
        ("'s', {1}, {delay = 1.5, key = 'k', attempts = 3}", [b"s", b"[1]", 1.5, b"k", 3]),
    ],
)
def test_a_push_reaches_the_host_with_its_arguments(run, arguments, args):
    host = Host([b"id", True])
    assert run(f"queue.push({arguments})", host=host).error is None
    assert host.calls == [("queue.push", args)]


def test_a_push_answers_with_the_run_and_whether_it_is_new(evaluate):
    source = "local id, is_new, more = queue.push('s', '') return {id, is_new, more == nil}"
    assert evaluate(source, host=Host([b"id", False])) == b'["id",false,true]'


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("nil, ''", "queue.push: script: string expected, got nil"),
        ("7, ''", "queue.push: script: string expected, got number"),
        ("'s', print", "queue.push: payload: a function has no JSON form"),
        ("'s', '', 60", "queue.push: options: table expected, got number"),
        ("'s', '', {wait = 1}", "queue.push: unknown option wait"),
        ("'s', '', {delay = '1'}", "queue.push: delay: number expected, got string"),
        ("'s', '', {key = 1}", "queue.push: key: string expected, got number"),
        ("'s', '', {attempts = {}}", "queue.push: attempts: number expected, got table"),
        ("'s', ('x'):rep(262145)", "queue.push: the payload is over 256 KiB"),
        ("'s', {('x'):rep(262141)}", "queue.push: the payload is over 256 KiB"),
    ],
)
def test_a_push_with_a_wrong_argument_is_an_error_in_its_line(fail, arguments, problem):
    host = Host([b"id", True])
    assert fail(f"local x\nx = queue.push({arguments})", host=host) == f"demo:2: {problem}"
    assert host.calls == []


def test_a_stored_value_is_read_as_json(evaluate):
    assert evaluate("return store.get('k').a[2]", host=Host(b'{"a":[1,"two"]}')) == b"two"


def test_an_absent_stored_value_is_nil(evaluate):
    assert evaluate("return tostring(store.get('k'))", host=Host(None)) == b"nil"


def refuse(name, args, *, deadline, note):
    raise HostCallError(f"{name}: refused")


def test_a_refusal_is_an_error_in_the_line_of_the_script(run):
    outcome = run("local x\nx = http.get('http://a.example/')", host=refuse)
    assert outcome.error.message == "demo:2: http.get: refused"
    assert outcome.error.line == 2


def test_a_refusal_can_be_caught_as_a_string(evaluate):
    source = "local _, problem = pcall(secrets.get, 'x')\nreturn type(problem) .. ': ' .. problem"
    assert evaluate(source, host=refuse) == b"string: secrets.get: refused"


@pytest.mark.parametrize(
    "library", ["http.get('u')", "queue.push('s')", "store.get('k')", "secrets.get('n')"]
)
def test_without_a_host_a_call_says_so(fail, library):
    function, name = library.split("(")[0], library.split(".")[0]
    assert fail(f"local x = {library}") == f"demo:1: {function}: {name} is not available here"


def test_calls_are_recorded_in_the_timeline(run):
    def slow(name, args, *, deadline, note):
        time.sleep(0.05)
        return refuse(name, args, deadline=deadline, note=note) if name == "http.get" else 1

    outcome = run("local x = store.increment('k')\npcall(http.get, 'u')", host=slow)
    first, second = outcome.host_calls
    assert (first.name, first.ok, first.error) == ("store.increment", True, None)
    assert (second.name, second.ok, second.error) == ("http.get", False, "http.get: refused")
    assert first.duration_seconds >= 0.05
    assert second.offset_seconds >= first.offset_seconds + first.duration_seconds


def test_waiting_for_the_host_uses_no_cpu_time(run):
    def slow(name, args, *, deadline, note):
        time.sleep(1.3)

    outcome = run("local x = store.get('k')\nreturn 'ok'", host=slow, limits=Limits(cpu_seconds=1))
    assert outcome.kind == "succeeded"
    assert outcome.cpu_seconds < 1
    assert outcome.duration_seconds >= 1.3


def test_an_answer_after_the_deadline_does_not_save_the_run(run):
    def too_slow(name, args, *, deadline, note):
        time.sleep(max(0, deadline - time.monotonic()) + 0.05)

    outcome = run(
        "print('a')\nlocal x = store.get('k')", host=too_slow, limits=Limits(wall_seconds=0.3)
    )
    assert outcome.kind == "timed-out"
    assert [line.text for line in outcome.logs] == ["a"]


def test_host_calls_are_counted(fail):
    host = Host(1)
    message = fail(
        "for i = 1, 10 do local x = store.increment('k') end",
        host=host,
        limits=Limits(host_calls=3),
    )
    assert message == "demo:1: store.increment: more than 3 host calls in a run"
    assert len(host.calls) == 3


def test_a_script_may_end_after_calls_that_were_refused(run):
    source = """for i = 1, 20 do pcall(store.increment, "k") end
        return "done" """
    outcome = run(source, host=Host(1), limits=Limits(host_calls=3))
    assert outcome.kind == "succeeded"
    assert [call.ok for call in outcome.host_calls] == [True] * 3


def test_a_script_that_keeps_calling_after_refusals_is_ended(new_pool):
    host, pool = Host(1), new_pool(size=1)
    source = "while true do pcall(store.increment, 'k') end"
    outcome = run_in(pool, source, host=host, limits=Limits(host_calls=3))
    assert outcome.error.message == "more than 3 host calls in a run"
    assert (outcome.kind, len(outcome.host_calls), len(host.calls)) == ("failed", 3, 3)
    assert pool.stats().killed == 1
    assert run_in(pool, "return 1").kind == "succeeded"


def test_the_error_of_a_call_is_cut(run):
    def refuse_at_length(name, args, *, deadline, note):
        raise HostCallError("x" * 100_000)

    outcome = run("pcall(store.get, 'k')", host=refuse_at_length)
    assert len(outcome.host_calls[0].error) == MAX_HOST_CALL_ERROR_CHARS


def test_the_host_answers_exactly_the_calls_of_the_contract():
    assert set(HOST_CALLS.values()) == set(RunHost(uuid.uuid4())._functions)


def test_an_answer_larger_than_the_memory_ends_the_run_out_of_memory(run):
    limits = Limits(lua_memory_bytes=2 * 1024 * 1024)
    outcome = run("local x = secrets.get('x')", host=Host(b"x" * 3_000_000), limits=limits)
    assert outcome.kind == "out-of-memory"


def test_an_answer_over_the_frame_limit_is_an_error(fail):
    assert "is over" in fail("local x = secrets.get('x')", host=Host(b"x" * 9_000_000))


def test_an_exception_of_the_host_ends_the_run_and_is_raised(new_pool):
    def broken(name, args, *, deadline, note):
        raise ZeroDivisionError

    pool = new_pool()
    with pytest.raises(ZeroDivisionError):
        run_in(pool, "pcall(store.get, 'k')", host=broken)
    assert (pool.stats().busy, pool.stats().children) == (0, 0)
    assert run_in(pool, "return 'next'").reply.body == b"next"


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(HOST_CALLS.values()))
@pytest.mark.parametrize("count", [0, 4])
def test_a_wrong_number_of_arguments_is_an_error_and_is_not_logged(name, count, caplog):
    with pytest.raises(HostCallError, match="wrong arguments"):
        RunHost(uuid.uuid4())(name, [b"a"] * count, deadline=time.monotonic() + 1, note=CallNote())
    assert caplog.records == []
