"""The errors of failed scripts, as administrators read them."""

from __future__ import annotations

import pytest

from scripts_engine.sandbox.limits import Limits

REPLACE_EVERYTHING = (
    "local G, next, type, error = _G, next, type, error "
    "local setmetatable, tostring = setmetatable, tostring "
    "for _, library in next, {string, table, math, coroutine} do "
    "for name in next, library do library[name] = function() error('mine') end end end "
    "for name in next, G do G[name] = function() error('mine') end end\n"
)


def test_an_error_names_script_and_line(run):
    error = run("local x = 1\nerror('boom')").error
    assert error.message == "demo:2: boom"
    assert error.line == 2


def test_the_traceback_shows_only_frames_of_the_script(run):
    error = run("local function inner()\n  error('boom')\nend\nlocal x = inner()\nreturn x").error
    assert error.traceback == (
        "stack traceback:\n"
        "\t[C]: in function 'error'\n"
        "\tdemo:2: in local 'inner'\n"
        "\tdemo:4: in main chunk"
    )


def test_an_error_of_the_platform_points_at_the_line_of_the_script(run):
    error = run("local x\nx = FromJson('{')").error
    assert error.message == "demo:2: FromJson: unexpected end at line 1 column 2"
    assert error.line == 2


@pytest.mark.parametrize(
    "call",
    [
        "crypto.sha256(nil)",
        "crypto.hmac_sha256('key')",
        "crypto.random_hex('x')",
        "base64.decode('%')",
        "hex.decode('zz')",
        "url.encode({})",
        "time.parse('yesterday')",
        "time.format('now')",
        "params.get()",
        "params.header(7)",
        "params.query(7)",
        "ToJson({print})",
        "array(1)",
        "object('x')",
        "http.request({})",
        "http.get('http://example.org')",
        "http.request({url = 'http://example.org', verb = 'GET'})",
        "http.request({url = 'http://example.org', json = print})",
        "store.get({})",
        "store.set('key', print)",
        "store.increment('key', 'x')",
        "secrets.get()",
        "string.format('%p', print)",
        "setmetatable({}, {__gc = print})",
        "local x = null.field",
        "null.field = 1",
    ],
)
def test_a_wrong_call_is_blamed_on_the_line_that_made_it(run, call):
    error = run(f"local _\n\n{call}\nreturn 1").error
    assert error.line == 3
    assert error.message.startswith("demo:3: ")


def test_a_syntax_error_names_its_line(run):
    outcome = run("local a = 1\nlocal b = = 2")
    assert outcome.kind == "failed"
    assert outcome.error.message == "demo:2: unexpected symbol near '='"
    assert outcome.error.line == 2


def test_an_error_without_position_still_has_its_line(run):
    error = run("\n\nerror('plain', 0)").error
    assert (error.message, error.line) == ("plain", 3)


def test_an_error_object_is_shown_as_json(run):
    error = run("error({code = 7})").error
    assert (error.message, error.line) == ('{"code":7}', 1)


def test_an_error_object_may_describe_itself(fail):
    source = "error(setmetatable({}, {__tostring = function() return 'out of stock' end}))"
    assert fail(source) == "out of stock"


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        ("'boom'", "demo:3: boom"),
        ("{code = 7}", '{"code":7}'),
        ("setmetatable({}, {__tostring = function() return 'told' end})", "told"),
        ("setmetatable({}, {__tostring = function() error('again') end})", "[]"),
        ("7", "7"),
        ("nil", "nil"),
    ],
)
def test_a_script_that_replaced_every_function_still_gets_its_error(run, raised, message):
    script = f"local function fail()\n  error({raised})\nend\nlocal x = fail()\nreturn x"
    error = run(REPLACE_EVERYTHING + script).error
    assert (error.message, error.line) == (message, 3)
    assert error.traceback.splitlines()[1:3] == [
        "\t[C]: in upvalue 'error'",
        "\tdemo:3: in local 'fail'",
    ]


def test_a_deep_stack_is_shortened_in_the_middle(run):
    script = "local function f(n)\n  if n == 0 then error('deep') end\n  f(n - 1)\nend\nf(50)"
    lines = run(script).error.traceback.splitlines()
    assert lines[1:3] == ["\t[C]: in function 'error'", "\tdemo:2: in upvalue 'f'"]
    assert "\t...\t(skipping 35 levels)" in lines
    assert lines[-1] == "\tdemo:5: in main chunk"


def fail_with_little_memory(run, freed_bytes):
    """Run a script that uses all its memory, frees some of it, and fails."""
    source = f"""
        held, size = {{}}, 1024 * 1024
        local spare = ("x"):rep({freed_bytes})
        local function hold_more() held[#held + 1] = ("x"):rep(size) .. #held end
        while size >= 1 do
            if not pcall(hold_more) then size = size // 2 end
        end
        spare = nil
        error("boom")
    """
    outcome = run(source, limits=Limits(lua_memory_bytes=4 * 1024 * 1024, wall_seconds=5))
    return outcome.kind, outcome.error.message


@pytest.mark.parametrize("freed_bytes", [64_000, 100_000, 250_000, 300_000])
def test_a_script_that_used_all_its_memory_still_gets_its_error(run, freed_bytes):
    assert fail_with_little_memory(run, freed_bytes) == ("failed", "demo:9: boom")


@pytest.mark.parametrize("freed_bytes", range(0, 24_000, 750))
def test_an_error_without_memory_for_its_message_is_out_of_memory(run, freed_bytes):
    assert fail_with_little_memory(run, freed_bytes) in [
        ("out-of-memory", "The script used more than 4 MiB of memory"),
        ("failed", "demo:9: boom"),
    ]


def test_a_name_that_looks_like_a_position_does_not_confuse_the_line(shared_pool):
    error = shared_pool.check_syntax("acme", b"\n\nx x", "a:9: b")
    assert error.message.startswith("a:9: b:3: ")
    assert error.line == 3


def test_a_name_longer_than_lua_prints_keeps_the_line(shared_pool):
    error = shared_pool.check_syntax("acme", b"\nx x", "n" * 200)
    assert error.line == 2


def test_checking_syntax_does_not_run_the_source(shared_pool):
    assert shared_pool.check_syntax("acme", b"while true do end", "demo") is None


def test_bytecode_is_refused(run, shared_pool):
    assert "attempt to load a binary chunk" in run(b"\x1bLua").error.message
    assert "attempt to load a binary chunk" in (
        shared_pool.check_syntax("acme", b"\x1bLua", "demo").message
    )


def test_a_source_over_64_kib_is_refused(run, shared_pool):
    source = b" " * (64 * 1024 + 1)
    assert run(source).error.message == "the source is too long: 64 KiB limit"
    assert shared_pool.check_syntax("acme", source, "demo").message == (
        "the source is too long: 64 KiB limit"
    )


def test_a_message_that_is_not_utf8_is_shown_with_replacement(fail):
    assert fail(r"error('\xff', 0)") == "\ufffd"


@pytest.mark.parametrize("line", ["9999999999", "99999999999999999999999", "70000", "0", "2"])
def test_a_script_cannot_choose_a_line_outside_its_source(run, line):
    outcome = run(f"error('demo:{line}: boom', 0)")
    assert outcome.error.message == f"demo:{line}: boom"
    assert outcome.error.line in {None, 1}


def test_a_long_traceback_is_cut(run):
    names = ["x" * 20_000 + letter for letter in "abc"]
    first, second, third = names
    source = f"""function {first}() error("deep") end
        function {second}() {first}() return 1 end
        function {third}() {second}() return 1 end
        {third}()"""
    outcome = run(source.encode()[: 64 * 1024])
    assert outcome.kind == "failed"
    assert len(outcome.error.traceback) <= 16 * 1024
