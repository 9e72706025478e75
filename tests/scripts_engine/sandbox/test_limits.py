"""Each limit has its outcome, and a message that names the limit and its figure."""

from __future__ import annotations

import pytest

from scripts_engine.sandbox.limits import MAX_WALL_SECONDS, Limits

from .conftest import run_in

SHORT = Limits(wall_seconds=0.3)


def test_the_wall_limit(run):
    outcome = run("while true do end", limits=SHORT)
    assert outcome.kind == "timed-out"
    assert outcome.error.message == "ran out of time: 0.3 s wall limit"
    assert outcome.error.line is None
    assert 0.3 <= outcome.duration_seconds < 30


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("local x = 0\nwhile true do\n  x = x + 1\nend", (2, 3)),
        ("local x\nx = ('a'):rep(30000):find('.-.-.-.-b')", (2,)),
        ("local x\ncoroutine.wrap(function()\n  while true do end\nend)()", (3,)),
        (
            "local function f(n)\n  local m = n\n  return m\nend\nwhile true do f(1) end",
            (1, 2, 3, 5),
        ),
        ("for i = 1, 1e5 do local x = i end\nwhile true do end", (2,)),
    ],
)
def test_a_traced_run_names_the_line_at_which_time_ran_out(run, source, line):
    # Long enough for a first line on a machine that stalls.
    error = run(source, limits=Limits(wall_seconds=1), trace_lines=True).error
    assert error.line in line
    assert error.message == f"ran out of time: 1 s wall limit (line {error.line})"


def test_a_traced_run_does_the_same_as_any_other(run):
    source = "local s = 0\nfor i = 1, 5000 do\n  s = s + i\nend\nreturn s"
    assert run(source, trace_lines=True).reply == run(source).reply


def test_the_cpu_limit(run):
    limits = Limits(cpu_seconds=1, wall_seconds=MAX_WALL_SECONDS)
    outcome = run("while true do end", limits=limits)
    assert outcome.kind == "timed-out"
    assert outcome.error.message == "ran out of time: 1 s CPU limit"


def test_the_cpu_limit_applies_to_each_run_separately(new_pool):
    pool = new_pool()
    source = "local stop = os.clock() + 0.7\nwhile os.clock() < stop do end\nreturn 'done'"
    limits = Limits(cpu_seconds=1, wall_seconds=MAX_WALL_SECONDS)
    kinds = [run_in(pool, source, limits=limits).kind for _ in range(4)]
    assert kinds == ["succeeded"] * 4
    assert pool.stats().spawned == 1


def test_a_run_has_its_own_cpu_limit_and_not_that_of_the_run_before(new_pool):
    pool = new_pool()
    assert run_in(pool, "return 1", limits=Limits(cpu_seconds=5)).kind == "succeeded"
    one_second = Limits(cpu_seconds=1, wall_seconds=MAX_WALL_SECONDS)
    outcome = run_in(pool, "while true do end", limits=one_second)
    assert outcome.error.message == "ran out of time: 1 s CPU limit"
    assert run_in(pool, "return 1", limits=one_second).kind == "succeeded"
    work = "local stop = os.clock() + 1.5\nwhile os.clock() < stop do end\nreturn 'done'"
    five_seconds = Limits(cpu_seconds=5, wall_seconds=MAX_WALL_SECONDS)
    assert run_in(pool, work, limits=five_seconds).kind == "succeeded"


def test_the_lua_memory_limit(run):
    outcome = run("local t = {}\nwhile true do t[#t + 1] = ('x'):rep(1000) .. #t end")
    assert outcome.kind == "out-of-memory"
    assert outcome.error.message == "The script used more than 64 MiB of memory"


def test_a_smaller_lua_memory_limit(run):
    limits = Limits(lua_memory_bytes=2 * 1024 * 1024)
    assert run("return #('x'):rep(1000 * 1000)", limits=limits).kind == "succeeded"
    outcome = run("return #('x'):rep(3 * 1000 * 1000)", limits=limits)
    assert outcome.kind == "out-of-memory"
    assert outcome.error.message == "The script used more than 2 MiB of memory"


def test_values_that_come_from_python_count_as_lua_memory(run):
    outcome = run("local t = {}\nwhile true do t[#t + 1] = hex.encode(('x'):rep(1e5)) end")
    assert outcome.kind == "out-of-memory"
    assert outcome.cpu_seconds < 3


@pytest.mark.parametrize("kilobytes", range(0, 64, 3))
def test_the_last_bytes_of_memory_never_make_a_call_hang(run, kilobytes):
    source = f"""
        local held, size = {{}}, 1024 * 1024
        local table_to_log, options = {{{{1}}, print}}, {{multi = true}}
        local reply = {{body = "x"}}
        local function hold_more() held[#held + 1] = ("x"):rep(size) .. #held end
        while size >= 1 do
            if not pcall(hold_more) then
                size = size // 2
            end
        end
        for _ = 1, {kilobytes} do held[#held] = nil end
        for _ = 1, 200 do
            pcall(print, "x")
            pcall(crypto.sha256, "x")
            pcall(crypto.random_hex, 1024)
            pcall(params.get, "body")
            pcall(log.info, table_to_log)
            pcall(time.in_zone, 0, "Europe/Berlin")
            pcall(url.parse_query, "a=1", options)
            pcall(Reply, reply)
        end
        held = nil
        return "alive"
    """
    limits = Limits(lua_memory_bytes=4 * 1024 * 1024, wall_seconds=MAX_WALL_SECONDS)
    outcome = run(source, params={"body": b"x" * 100_000}, limits=limits)
    assert outcome.kind == "succeeded"


def test_a_json_depth_limit(run):
    limits = Limits(json_depth=3)
    assert run("return FromJson('[[[1]]]')", limits=limits).reply.body == b"[[[1]]]"
    assert (
        "nested deeper than 3 levels" in run("FromJson('[[[[1]]]]')", limits=limits).error.message
    )
    assert "nested deeper than 3 levels" in run("return {{{{1}}}}", limits=limits).error.message


@pytest.mark.parametrize(
    "values",
    [
        {"wall_seconds": 0},
        {"wall_seconds": 26},
        {"log_bytes": 10**9},
        {"log_lines": 10**9},
        {"reply_bytes": 10**9},
        {"lua_memory_bytes": 1000},
    ],
)
def test_impossible_limits_are_refused(values):
    with pytest.raises(ValueError):
        Limits(**values)
