"""The listing of globals that look like mistakes, from the compiler's own output."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts_engine.sandbox.child.runtime import LuaState, compile_prelude
from scripts_engine.sandbox.contract import GlobalUse, GlobalUseKind
from scripts_engine.sandbox.limits import MAX_LISTED_GLOBALS, MAX_SOURCE_BYTES
from scripts_engine.sandbox.parent import child_frames
from scripts_engine.sandbox.protocol import ProtocolError

UNDEFINED, ASSIGNED = GlobalUseKind.UNDEFINED, GlobalUseKind.ASSIGNED
PRELUDE = compile_prelude()


@pytest.fixture
def listed(shared_pool):
    def list_globals(source):
        return list(shared_pool.list_globals("acme", source.encode()))

    return list_globals


def list_here(source):
    """List in this process, where an error of the prelude is raised instead of swallowed."""
    state = LuaState(PRELUDE, lambda _operation, _room, name: PRELUDE.later[name], 2**26)
    answer = state.list_globals(source.encode())
    return child_frames.uses_in_listing(answer or (), source.encode())


def test_a_misspelt_local_is_undefined_and_the_local_suggested(listed):
    assert listed("local total = 1\nreturn totla") == [GlobalUse(UNDEFINED, "totla", 2, "total")]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("parms", "params"),
        ("tojson", "ToJson"),
        ("sotre", "store"),
        ("strings", "string"),
        ("something", ""),
        ("o", ""),
    ],
)
def test_a_name_much_like_a_provided_one_is_suggested(listed, name, suggestion):
    assert listed(f"return {name}") == [GlobalUse(UNDEFINED, name, 1, suggestion)]


def test_a_local_that_is_out_of_scope_is_its_own_suggestion(listed):
    assert listed("do local sum = 1 end\nreturn sum") == [GlobalUse(UNDEFINED, "sum", 2, "sum")]


@pytest.mark.parametrize(
    "source",
    [
        "return ToJson{math.pi, params.get('x')}",
        "local x = 1 return function() return x end",
        "for i = 1, 2 do print(i) end",
        "local function f(a, ...) return a, ... end return f",
        "function helper() return later() end\nfunction later() end",
        "local log = {} log.x = 1",
        "log = nil",
        "local _ENV = {} x = y",
        "local function f(_ENV) return x end return f",
        "_ENV = {} return x",
        "local e = _ENV e.x = 1 return x",
        "local e, s = _ENV, 'name' return x",
        "_G.x = 1 return x",
        "return setmetatable(_G, {__index = print}) and x",
        "",
        "x x",
        "\x1bLua",
    ],
)
def test_nothing_is_listed(listed, source):
    assert listed(source) == []


def test_a_new_global_is_noted_at_its_first_assignment(listed):
    assert listed("local a\nx = 1\nx = 2\nreturn x, a") == [GlobalUse(ASSIGNED, "x", 2)]


def test_functions_are_noted_only_inside_of_functions(listed):
    source = "function outer()\n  function inner() end\nend"

    assert listed(source) == [GlobalUse(ASSIGNED, "inner", 2)]


def test_lines_are_right_after_a_long_gap(listed):
    assert listed("print(1)" + "\n" * 1000 + "return x") == [GlobalUse(UNDEFINED, "x", 1001)]


def test_names_after_many_constants_are_listed(listed):
    constants = ",".join(f"'{number}'" for number in range(600))
    source = f"local t = {{{constants}}}\nknown = t\nreturn known, missing, print"

    assert listed(source) == [GlobalUse(ASSIGNED, "known", 2), GlobalUse(UNDEFINED, "missing", 3)]


def test_names_after_a_hundred_thousand_constants_are_listed():
    constants = ",".join(map(str, range(1000, 140_000)))

    assert [use.name for use in list_here(f"local t = {{'{constants}',{constants}}} return nope")]


def test_a_global_of_a_long_name_is_found_defined(listed):
    name = "n" * 50

    assert listed(f"function {name}() end\nreturn {name}") == []


def test_the_listing_is_bounded(listed):
    source = "\n".join(f"print(g{number})" for number in range(4500))

    assert [use.line for use in listed(source)] == list(range(1, MAX_LISTED_GLOBALS + 1))


@pytest.mark.parametrize(
    "source",
    [
        ";".join(f"g{number}=1" for number in range(7000)),
        "f" + '""' * 32_000,
        "x=" + "a." * 32_000 + "a",
        "local " + ",".join(f"l{number}" for number in range(190)) + "\nreturn m",
        "return " + "(function() return " * 60 + "m" + " end)" * 60,
        "goto out\ndo ::again:: m() goto again end\n::out::",
        "return " + "n" * 60_000,
    ],
    ids=["writes", "calls", "fields", "locals", "nested", "goto", "name"],
)
def test_a_crafted_source_is_listed_without_harm_to_its_process(shared_pool, source):
    killed = shared_pool.stats().killed

    uses = shared_pool.list_globals("acme", source.encode())

    assert len(uses) <= MAX_LISTED_GLOBALS
    assert shared_pool.stats().killed == killed


def test_a_source_over_the_limit_is_not_listed(shared_pool):
    assert shared_pool.list_globals("acme", b"x=y\n" * MAX_SOURCE_BYTES) == ()


def test_listing_does_not_run_the_source(listed):
    assert listed("while true do end return x") == [GlobalUse(UNDEFINED, "x", 1)]


MISSING = [f"missing_{number}" for number in range(5)]
EXPRESSIONS = st.recursive(
    st.sampled_from(["1", "'s'", "nil", "here", "print", "{}", "...", *MISSING]),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} and {} or 2)".format, inner, inner),
        st.builds("{{{}, x = {}, [{}] = 1}}".format, inner, inner, inner),
        st.builds("print({}, {})".format, inner, inner),
        st.builds("(function(here, ...) return {} end)".format, inner),
        st.builds("({})[{}].field".format, inner, inner),
    ),
    max_leaves=8,
)
STATEMENTS = st.recursive(
    st.one_of(
        st.builds("local here = {}".format, EXPRESSIONS),
        st.builds("made = {}".format, EXPRESSIONS),
        st.builds("made, made = {}, made".format, EXPRESSIONS),
        st.builds("print({})".format, EXPRESSIONS),
        st.builds("({}).field = {}".format, EXPRESSIONS, EXPRESSIONS),
        st.just("print{" + ",".join(f"'{number}'" for number in range(300)) + "}"),
    ),
    lambda inner: st.one_of(
        st.builds("{}\n;{}".format, inner, inner),
        st.builds("do {} end".format, inner),
        st.builds("if {} then {} else {} end".format, EXPRESSIONS, inner, inner),
        st.builds("while {} do {} ; break end".format, EXPRESSIONS, inner),
        st.builds("repeat {} until {}".format, inner, EXPRESSIONS),
        st.builds("for here, here_too in {} do {} end".format, EXPRESSIONS, inner),
        st.builds("function made(...) {} end".format, inner),
        st.builds("local function here(...) {} end".format, inner),
        st.builds("do {} ; goto done end ::done::".format, inner).map("do {} end".format),
    ),
    max_leaves=6,
)


@given(STATEMENTS)
@settings(max_examples=40, deadline=None)
def test_every_undefined_name_of_any_source_is_listed(source):
    listed = {use.name for use in list_here(source) if use.kind is UNDEFINED}

    assert listed - {"here", "here_too"} == {name for name in MISSING if name in source}


@pytest.mark.parametrize(
    "answer",
    [
        [None],
        [b"undefined", b"x", 1],
        [b"other", b"x", 1, b""],
        ["undefined", b"x", 1, b""],
        [[], b"x", 1, b""],
        [b"undefined", b"a b", 1, b""],
        [b"undefined", b"<b>", 1, b""],
        [b"undefined", b"x\n", 1, b""],
        [b"undefined", b"", 1, b""],
        [b"undefined", b"x" * 65, 1, b""],
        [b"undefined", 1, 1, b""],
        [b"undefined", b"x", 2, b""],
        [b"undefined", b"x", 0, b""],
        [b"undefined", b"x", None, b""],
        [b"undefined", b"x", 1.0, b""],
        [b"undefined", b"x", 1, None],
        [b"undefined", b"x", 1, b"a b"],
        [b"undefined", b"x", 1, b""] * (MAX_LISTED_GLOBALS + 1),
    ],
)
def test_an_impossible_answer_is_a_protocol_error(answer):
    with pytest.raises(ProtocolError):
        child_frames.uses_in_listing(answer, b"return x")
