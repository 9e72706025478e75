"""A Lua state that has served runs is, for the next one, a new state.

The state is compared whole: everything that Lua refers to, from its registry (`walk.lua`).
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lupa import lua54

from scripts_engine.sandbox import protocol
from scripts_engine.sandbox.child import runtime
from scripts_engine.sandbox.child.operations import NOT_ENOUGH_MEMORY, Operations
from scripts_engine.sandbox.child.runtime import (
    ALLOWED_NAMES,
    LuaError,
    LuaMemoryError,
    LuaState,
    Prelude,
)
from scripts_engine.sandbox.contract import Libraries, Library
from scripts_engine.sandbox.limits import MIB, Limits
from scripts_engine.sandbox.protocol import LogArea, create_area_file
from tests.examples import examples

from .conftest import run_in, run_until_kept

WALK = (Path(__file__).parent / "walk.lua").read_bytes()
COMPILE = b"function(text) return string.dump(assert(load(text, '=walk')), true) end"
LIBRARY = Library("money", b"counted = (counted or 0) + 1 return {tax = 2, string = string}")
LIBRARIES = Libraries({b"money": b"key"}, {b"key": LIBRARY})
LIMITS = Limits(lua_memory_bytes=4 * MIB).as_run_arguments()
BODY = b'{"id": 4711, "items": [{"price": 12.5}, null], "note": "please \\"ring\\""}'


class Walked:
    """A state in this process, and the graph of all that it refers to."""

    def __init__(self, prelude: Prelude) -> None:
        log_file = create_area_file()
        self._log_area = LogArea(log_file)
        self._operations = Operations(
            self._log_area,
            lambda _name, _packed: b"\xc0",
            prelude.later,
            lambda key: protocol.pack_library(b"money", LIBRARIES.by_key[key]),
        )
        self.serve = self._operations.serve
        self._state = LuaState(prelude, self.serve, 64 * MIB)

    def run(self, source: str) -> Any:
        params = {b"body": BODY, b"query": b"a=1&b=%20", b"content_type": b"application/json"}
        self._operations.start_run(params, [[b"X-Shop", b"tea"]])
        try:
            return self._state.run(
                source.encode(), b"demo", LIBRARIES.packed_requires, False, *LIMITS
            )
        except (LuaMemoryError, LuaError):
            return None
        finally:
            self._operations.end_run()
            self._state.renew()

    def graph(self) -> list[str]:
        text: bytes = self._state._call(b"walk")
        self._state.renew()
        return text.decode("latin-1").split("\n")


def walkable(folder: Path | None = None) -> Prelude:
    prelude = runtime.compile_prelude(folder) if folder else runtime.compile_prelude()
    compiler = lua54.LuaRuntime(encoding=None).eval(COMPILE)
    later = {**prelude.later, b"walk": compiler(b"return function(...)\n%b\nend" % WALK)}
    return Prelude(prelude.eager, runtime.LaterChunks(later))


def differences(one: list[str], other: list[str]) -> set[str]:
    return set(one) ^ set(other)


PRELUDE = walkable()
NEW = Walked(PRELUDE).graph()

NAMES = sorted(entry.split()[0] for entry in ALLOWED_NAMES if "<" not in entry)
TABLES = sorted(entry.split()[0] for entry in ALLOWED_NAMES if entry.endswith(" table"))
TABLES = [name for name in TABLES if "<" not in name]
FUNCTIONS = sorted(
    entry.split()[0] for entry in ALLOWED_NAMES if entry.endswith(" function") and "<" not in entry
)
MADE = [
    "FromJson('{\"a\": [1, null]}')",
    "array({})",
    "object({})",
    "Reply({})",
    "params.json()",
    "url.parse_query('a=1', {multi = true})",
    "coroutine.running()",
    "require('money')",
    "coroutine.create(function() coroutine.yield(1) end)",
    "select(2, pcall(error, {}))",
    "setmetatable({}, {__mode = 'kv'})",
]
VALUES = [
    "nil",
    "true",
    "0",
    "-1",
    "2^53",
    "'leaked'",
    "('x'):rep(3000)",
    "{1, 2, leaked = 'leaked'}",
    "function(...) leaked = ... return 1 end",
    "function() error('thrown') end",
    "function() coroutine.yield('yielded') end",
    "setmetatable({}, {__tostring = function() error('no text') end, __index = _G})",
    "setmetatable({}, {__tostring = coroutine.yield, __name = 'leaked'})",
    *MADE,
    *TABLES,
]

a_table = st.sampled_from([*TABLES, *MADE, "getmetatable('')", "getmetatable(_G)"])
a_value = st.sampled_from([*VALUES, *NAMES])
some_values = st.lists(a_value, max_size=4).map(", ".join)
METAMETHODS = ["__index", "__newindex", "__call", "__close", "__mode", "__name", "__gc", "__eq"]


def safely(text: str) -> str:
    return f"pcall(function() {text} end)"


STEPS = st.one_of(
    st.builds("rawset({}, 'leaked', {})".format, a_table, a_value),
    st.builds("rawset({0}, {1}, {2}) rawset({0}, {1}, nil)".format, a_table, a_value, a_value),
    st.builds("{} = {}".format, st.sampled_from([n for n in NAMES if n != "_G"]), a_value),
    st.builds("for k in next, {} do rawset({}, k, {}) end".format, a_table, a_table, a_value),
    st.builds(
        "setmetatable({}, {{{} = {}}})".format, a_table, st.sampled_from(METAMETHODS), a_value
    ),
    st.builds("{}({})".format, st.sampled_from(FUNCTIONS), some_values),
    st.builds("leaked = pcall({}, {})".format, st.sampled_from(FUNCTIONS), a_value),
    st.builds("leaked = coroutine.wrap({}) leaked({})".format, a_value, some_values),
    st.builds(
        "local c <close> = setmetatable({{}}, {{__close = function() {}({}) end}})".format,
        st.sampled_from(FUNCTIONS),
        some_values,
    ),
    st.builds("table.sort({{3, 1, 2}}, {})".format, a_value),
    st.builds("string.gsub('abc', '.', {})".format, a_value),
    st.builds("log.info({})".format, some_values),
    st.builds("for i = 1, 1100 do log.warn(i, {}) end".format, a_value),
    st.builds("math.randomseed({})".format, st.sampled_from(["42", "", "1, 2"])),
    st.builds("ToJson({{a = {{ {}, {} }} }})".format, a_value, a_value),
    st.builds(
        "FromJson('{{\"a\": [1, ' .. {})".format, st.sampled_from(["'1]}'", "'tru'", "'\"'"])
    ),
).map(safely)
ENDS = st.one_of(
    st.builds("return {}".format, a_value),
    st.builds("return Reply({{status = 201, body = {}}})".format, a_value),
    st.builds("error({})".format, a_value),
    st.sampled_from(["", "syntax error", "local t = {} while true do t[#t + 1] = {} end"]),
)
SCRIPTS = st.builds(
    lambda steps, end: "\n".join([*steps, f"do {end} end" if end != "syntax error" else end]),
    st.lists(STEPS, max_size=8),
    ENDS,
)


@given(st.lists(SCRIPTS, min_size=1, max_size=4))
@settings(max_examples=examples(150), deadline=None)
def test_whatever_runs_do_the_next_finds_a_new_state(sources: list[str]):
    state = Walked(PRELUDE)
    for source in sources:
        state.run(source)
    assert differences(state.graph(), NEW) == set()


def test_a_state_in_which_every_function_was_called_is_as_new():
    state = Walked(PRELUDE)
    calls = "\n".join(safely(f"leaked = {name}({value})") for name in FUNCTIONS for value in MADE)
    state.run(f"{calls}\nreturn Reply({{}})")
    assert differences(state.graph(), NEW) == set()


def test_an_answer_kept_for_a_run_is_gone_with_it():
    state = Walked(PRELUDE)
    # Lua has no room for the answer, which therefore waits in Python.
    state.run("hoard = ('x'):rep(2500000) pcall(base64.encode, ('leaked'):rep(300000))")
    fetch = "return ('x'):rep(1000) .. base64.encode('second')"
    assert state.run(fetch)[2].endswith(b"xc2Vjb25k")
    assert state.serve(b"kept", 1e9) == (False, NOT_ENOUGH_MEMORY)


# What could be forgotten: a chunk, what it says, what it says when that is forgotten, and a script
# that leaves something there.
FORGOTTEN = {
    "a library": (
        "runs",
        "environment._G = environment",
        "environment._G, environment.utf8 = environment, pristine.utf8",
        "utf8.leaked = 1",
    ),
    "the table of globals": (
        "runs",
        "local environment = new_environment(pristine)",
        "local environment = pristine",
        "leaked = 1",
    ),
    "the metatable of strings": (
        "runs",
        "string_metatable.__index = environment.string",
        "if not shared.run then string_metatable.__index = environment.string end",
        "string.leaked = 1",
    ),
    "the names in messages": (
        "runs",
        "loaded._G = environment",
        "if not shared.run then loaded._G = environment end",
        "leaked = 1",
    ),
    "the environment of a compiled script": (
        "runs",
        "shared.unbind()\n  bound_library_cache",
        "bound_library_cache",
        "leaked = 1",
    ),
    "the environment of a compiled library": (
        "runs",
        "bound[#bound + 1] = main",
        "bound[1] = bound[1] or main",
        "require('money')",
    ),
    "what a library returned": (
        "require",
        "local values, is_loaded = {}, {}",
        "local values, is_loaded = private.originals, private.originals",
        "require('money')",
    ),
    "null": (
        "json_reader",
        "null = setmetatable({}, private.null_metatable)",
        (
            "local originals = private.originals\n"
            "null = originals.null or setmetatable({}, private.null_metatable)\n"
            "originals.null = null"
        ),
        "rawset(null, 'leaked', 1)",
    ),
    "the cached params": (
        "params",
        "local known = {}",
        "local known = private.originals",
        "params.get('body')",
    ),
    "a limit": (
        "run",
        "private.json_depth = json_depth",
        "private.originals.json_depth = json_depth",
        "",
    ),
}


@pytest.mark.parametrize(
    ("chunk", "text", "forgotten", "script"), FORGOTTEN.values(), ids=FORGOTTEN.keys()
)
def test_the_comparison_sees_what_was_forgotten(tmp_path, chunk, text, forgotten, script):
    folder = Path(shutil.copytree(Path(runtime.__file__).parent / "prelude", tmp_path / "prelude"))
    path = folder / f"{chunk}.lua"
    assert text in path.read_text()
    path.write_text(path.read_text().replace(text, forgotten))
    prelude = walkable(folder)
    state = Walked(prelude)
    state.run(script)
    assert differences(state.graph(), Walked(prelude).graph())


def test_a_run_has_its_whole_log_after_one_that_filled_its_own(new_pool):
    pool = new_pool(size=1)
    limits = Limits(log_lines=5, log_bytes=500)
    run_until_kept(pool, "for i = 1, 9 do print('first') end", limits=limits)
    outcome = run_in(pool, "for i = 1, 5 do print('second') end", limits=limits)
    assert [line.text for line in outcome.logs] == ["second"] * 5


def test_a_run_has_its_own_call(new_pool):
    pool = new_pool(size=1)
    source = "return {params.get('body'), params.query('q'), params.header('h'), params.json()}"
    bodies = []
    for value in (b"1", b"2", b"3"):
        call = {"params": {"body": value, "query": b"q=" + value}, "headers": [(b"H", value)]}
        bodies.append(run_in(pool, source, **call).reply.body)
    assert bodies == [b'["1","1","1",1]', b'["2","2","2",2]', b'["3","3","3",3]']
