"""Libraries in a run: what `require` returns, how it fails, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from scripts_engine.sandbox.contract import Libraries, Library, OutcomeKind
from scripts_engine.sandbox.limits import (
    KIB,
    MAX_LIBRARIES,
    MAX_LIBRARY_KEY_BYTES,
    MAX_PROGRAM_BYTES,
    MAX_SOURCE_BYTES,
    Limits,
)
from scripts_engine.sandbox.parent.conversation import Conversation

from .conftest import run_in, run_until_kept


def libraries(**sources: str) -> Libraries:
    """Each of them, and the script, may require each by its name."""
    version = repr(sorted(sources.items()))
    keys = {name.encode(): f"{name} {hash(version)}".encode() for name in sources}
    return Libraries(
        keys,
        {keys[name.encode()]: Library(name, text.encode(), keys) for name, text in sources.items()},
    )


def using(**sources: str) -> dict[str, Any]:
    return {"libraries": libraries(**sources)}


def test_a_script_gets_what_a_library_returns(evaluate):
    money = "local money = {} function money.double(n) return 2 * n end return money"
    source = 'local money = require("money") return money.double(21)'
    assert evaluate(source, **using(money=money)) == b"42"


def test_a_library_runs_once_in_a_run(evaluate):
    source = 'return {require("a") == require("a"), require("b"), loads}'
    a, b = "loads = (loads or 0) + 1 return {}", 'return require("a") == require("a")'
    assert evaluate(source, **using(a=a, b=b)) == b"[true,true,1]"


def test_a_library_that_returns_nil_is_nil_and_runs_once(evaluate):
    source = 'local value, again = require("a"), require("a") return {tostring(again), loads}'
    assert evaluate(source, **using(a="loads = (loads or 0) + 1")) == b'["nil",1]'


def test_a_library_that_returns_false_runs_once(evaluate):
    source = 'return {require("a"), require("a"), loads}'
    assert evaluate(source, **using(a="loads = (loads or 0) + 1 return false")) == (
        b"[false,false,1]"
    )


def test_only_the_first_value_of_a_library_is_returned(evaluate):
    assert evaluate('return select("#", require("a"))', **using(a="return 1, 2, 3")) == b"1"


def test_libraries_share_the_globals_of_the_run(evaluate):
    source = 'shared = 1 require("a") return {shared, mine}'
    assert evaluate(source, **using(a="shared = shared + 1 mine = 'own'")) == b'[2,"own"]'


def test_the_same_name_stands_for_another_library_in_another_chunk(evaluate):
    given = Libraries(
        {b"money": b"new", b"cart": b"cart"},
        {
            b"new": Library("money", b"return 'new'"),
            b"old": Library("money", b"return 'old'"),
            b"cart": Library("cart", b'return require("money")', {b"money": b"old"}),
        },
    )
    assert evaluate('return {require("money"), require("cart")}', libraries=given) == (
        b'["new","old"]'
    )


def test_a_tail_call_and_a_call_through_pcall_use_the_names_of_their_chunk(evaluate):
    given = Libraries(
        {b"outer": b"outer"},
        {
            b"outer": Library(
                "outer",
                b'local ok, value = pcall(require, "inner") assert(ok) return require("inner")',
                {b"inner": b"inner"},
            ),
            b"inner": Library("inner", b"return 'inner'"),
        },
    )
    assert evaluate('return require("outer")', libraries=given) == b"inner"


def test_a_script_cannot_require_what_only_its_library_requires(fail):
    given = Libraries(
        {b"outer": b"outer"},
        {
            b"outer": Library("outer", b"return 1", {b"inner": b"inner"}),
            b"inner": Library("inner", b"return 1"),
        },
    )
    assert fail('\nlocal x = require("inner")', libraries=given) == (
        'demo:2: require: no library "inner" here; write its name out: require("name")'
    )


def test_without_libraries_every_name_is_refused(fail):
    assert 'no library "money" here' in fail('local x = require("money")')


@pytest.mark.parametrize(
    ("library", "message"),
    [
        ("\nlocal x = nil\nx.y = 1", "a:3: attempt to index a nil value (local 'x')"),
        ("\nerror('boom')", "a:2: boom"),
        ("\n\nreturn return", "a:3: unexpected symbol near 'return'"),
        ("local = 1", "a:1: <name> expected near '='"),
        ("\nFromJson('{')", "a:2: FromJson: unexpected end at line 1 column 2"),
        ("\nlocal b = require('b')", 'a:2: require: no library "b" here'),
        ("\nlocal a = require('a')", 'a:2: require: the library "a" requires itself'),
    ],
)
def test_an_error_in_a_library_names_it_and_its_line(run, library, message):
    error = run('local one = 1\nlocal a = require("a")', **using(a=library)).error
    assert error.message.startswith(message)
    assert error.line == 2


def test_an_error_in_a_function_of_a_library_shows_both_lines(run):
    a = "local a = {}\nfunction a.fail()\n  error('boom')\nend\nreturn a"
    error = run("local a = require('a')\n\na.fail()", **using(a=a)).error
    assert (error.message, error.line) == ("a:3: boom", 3)
    assert error.traceback == (
        "stack traceback:\n"
        "\t[C]: in function 'error'\n"
        "\ta:3: in field 'fail'\n"
        "\tdemo:3: in main chunk"
    )


def test_the_traceback_names_the_main_chunks_of_libraries(run):
    error = run("local a = require('a')", **using(a="local b = require('b')", b="error('x')")).error
    assert error.traceback == (
        "stack traceback:\n"
        "\t[C]: in function 'error'\n"
        "\tb:1: in main chunk\n"
        "\ta:1: in main chunk\n"
        "\tdemo:1: in main chunk"
    )


def test_a_run_out_of_time_in_a_library_names_the_line_of_the_script(run):
    outcome = run(
        "local one = 1\n\nlocal a = require('a')",
        limits=Limits(wall_seconds=0.5),
        trace_lines=True,
        **using(a="\n\n\n\n\nwhile true do end"),
    )
    assert (outcome.kind, outcome.error.line) == (OutcomeKind.TIMED_OUT, 3)


def test_the_memory_of_libraries_counts(run):
    sources = {f"a{number}": "return ('x'):rep(2000000)" for number in range(9)}
    source = "local kept = {} for i = 0, 8 do kept[i] = require('a' .. i) end"
    outcome = run(source, limits=Limits(lua_memory_bytes=16 * 1024 * KIB), **using(**sources))
    assert outcome.kind == OutcomeKind.OUT_OF_MEMORY


def test_a_hundred_libraries_may_require_one_another_in_a_row(evaluate):
    sources = {f"a{n}": f"return (require('a{n + 1}'))" for n in range(MAX_LIBRARIES - 1)}
    last = {f"a{MAX_LIBRARIES - 1}": "return 'end'"}
    assert evaluate("return require('a0')", **using(**sources, **last)) == b"end"


def test_the_next_run_has_tables_of_its_own(new_pool):
    pool = new_pool(size=1)
    given = using(a="return {count = 0}")
    source = "local a = require('a') a.count = a.count + 1 return a.count"
    run_until_kept(pool, source, **given)
    assert run_in(pool, source, **given).reply.body == b"1"


def needs_of(pool, source: str, monkeypatch, **given: Any) -> list[bytes]:
    """The keys of the libraries that the worker sends to the child for a run."""
    sent: list[bytes] = []
    answer = Conversation._library
    monkeypatch.setattr(
        Conversation, "_library", lambda self, key: sent.append(key) or answer(self, key)
    )
    run_in(pool, source, **given)
    monkeypatch.undo()
    return sent


def test_a_library_is_sent_once_while_its_state_lasts(new_pool, monkeypatch):
    pool = new_pool(size=1)
    given = using(a="return 1", b="return 2")
    assert len(needs_of(pool, "return require('a')", monkeypatch, **given)) == 1
    run_until_kept(pool, "return require('a')", **given)
    assert needs_of(pool, "return require('a')", monkeypatch, **given) == []


def test_a_library_that_is_not_reached_is_not_sent(new_pool, monkeypatch):
    pool = new_pool(size=1)
    source = "if params.get('x') then require('a') end"
    assert needs_of(pool, source, monkeypatch, **using(a="return 1")) == []


def test_a_state_is_kept_after_it_has_compiled_large_libraries(new_pool):
    pool = new_pool(size=1)
    large = "local function name(value) return {value, value, value} end\n" * 190
    large = f"do\n{large}end\n" * 5
    given = using(a=large, b=large, c=large, d=large)
    assert 200 * KIB < given["libraries"].source_bytes < MAX_PROGRAM_BYTES
    source = "for _, name in ipairs{'a', 'b', 'c', 'd'} do require(name) end"
    assert run_until_kept(pool, source, **given) > 0


def test_an_equal_source_under_another_key_is_another_library(new_pool):
    pool = new_pool(size=1)
    for name in ("one", "two"):
        given = Libraries({b"a": name.encode()}, {name.encode(): Library(name, b"error('x')")})
        outcome = run_in(pool, "require('a')", libraries=given)
        assert outcome.error.message == f"{name}:1: x"


def test_a_program_over_the_limit_does_not_run(run):
    full = "-" * MAX_SOURCE_BYTES
    given = libraries(a=full, b=full, c=full, d="--")
    outcome = run(b" " * MAX_SOURCE_BYTES, libraries=given)
    assert outcome.kind == OutcomeKind.FAILED
    assert outcome.error.message == (
        "the source is too long together with its libraries: 256 KiB limit"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"by_key": {bytes([n // 9, n]): Library("a", b"") for n in range(MAX_LIBRARIES + 1)}},
        {"by_key": {b"a": Library("a", b"-" * (MAX_SOURCE_BYTES + 1))}},
        {"by_key": {bytes([n]): Library("a", b"-" * MAX_SOURCE_BYTES) for n in range(5)}},
        {"by_key": {b"a" * (MAX_LIBRARY_KEY_BYTES + 1): Library("a", b"")}},
        {"by_key": {b"": Library("a", b"")}},
        {"requires": {b"a": b"a"}},
        {"by_key": {b"a": Library("a", b"", {b"b": b"b"})}},
    ],
    ids=["too many", "a large one", "large", "a long key", "no key", "unknown", "unknown below"],
)
def test_libraries_over_a_limit_or_without_a_source_are_refused(given):
    with pytest.raises(ValueError, match=r"librar|key"):
        Libraries(**given)
