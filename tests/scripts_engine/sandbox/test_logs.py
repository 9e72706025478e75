"""print and log.*: the log of a run, as administrators read it."""

from __future__ import annotations

import time

import pytest

from scripts_engine.sandbox.limits import Limits


def texts(outcome):
    return [line.text for line in outcome.logs]


def test_lines_have_level_time_and_text(run):
    before = time.time()
    outcome = run("print('a', 1, nil, true)\nlog.debug('b')\nlog.warn('c')\nlog.error('d')")
    assert [(line.level, line.text) for line in outcome.logs] == [
        ("info", "a\t1\tnil\ttrue"),
        ("debug", "b"),
        ("warn", "c"),
        ("error", "d"),
    ]
    assert all(before - 1 < line.at < time.time() + 1 for line in outcome.logs)


def test_values_are_shown_without_addresses(run):
    source = """
        print({}, print, coroutine.create(print), null)
        print(setmetatable({}, {__tostring = function() return "mine" end}))
        print(setmetatable({}, {__name = "Order"}))
    """
    assert texts(run(source)) == ["table\tfunction\tthread\tnull", "mine", "Order"]


def test_a_logged_table_is_json(run):
    source = """
        log.info("order", {id = 7, items = {1, 2}}, {}, null)
        log.warn(FromJson('{"a": [], "b": {}}'))
        log.error(setmetatable({id = 7}, {}))
        log.debug(setmetatable({}, {__tostring = function() return "mine" end}))
    """
    assert texts(run(source)) == [
        'order\t{"id":7,"items":[1,2]}\t[]\tnull',
        '{"a":[],"b":{}}',
        '{"id":7}',
        "mine",
    ]


def test_a_logged_table_without_json_is_inspected(run):
    assert texts(run("log.info({f = print}, {[1.5] = 1})")) == [
        "{\n  f = function,\n}\t{\n  [1.5] = 1,\n}"
    ]


def test_a_logged_table_is_cut_like_any_line(run):
    source = "local t = {} for i = 1, 1e5 do t[i] = 'x' end log.info(t) log.info(t)"
    found = texts(run(source))
    assert [len(text) for text in found] == [65536, len("the log is cut here: over 64 KiB")]
    assert found[0].startswith('["x","x",')


def test_bytes_that_are_not_utf8_are_shown_with_replacement(run):
    assert texts(run(r"print('a\xffb')")) == ["a\ufffdb"]


def test_the_log_of_a_failed_script_is_kept(run):
    assert texts(run("print('before')\nerror('boom')")) == ["before"]


def test_the_log_of_a_killed_script_is_kept(run):
    outcome = run("print('before')\nwhile true do end", limits=Limits(wall_seconds=0.3))
    assert outcome.kind == "timed-out"
    assert texts(outcome) == ["before"]


def test_the_log_of_a_script_without_memory_is_kept(run):
    outcome = run("print('before')\nreturn ('x'):rep(1e9)")
    assert outcome.kind == "out-of-memory"
    assert texts(outcome) == ["before"]


def test_the_log_is_cut_after_1000_lines_with_a_notice(run):
    found = texts(run("for i = 1, 2000 do print(i) end"))
    assert found[:1000] == [str(number) for number in range(1, 1001)]
    assert found[1000:] == ["the log is cut here: over 1,000 lines"]


def test_1000_lines_are_not_cut(run):
    assert len(run("for i = 1, 1000 do print(i) end").logs) == 1000


def test_the_log_is_cut_after_64_kib_with_a_notice(run):
    found = texts(run("for i = 1, 100 do print(('x'):rep(1000)) end"))
    assert "".join(found[:-1]) == "x" * 65536
    assert found[-1] == "the log is cut here: over 64 KiB"


def test_one_line_is_cut_too(run):
    found = texts(run("print(('x'):rep(1e6))"))
    assert [len(text) for text in found] == [65536, len("the log is cut here: over 64 KiB")]


def test_a_run_never_sees_the_log_of_the_one_before(run):
    assert texts(run("print('first')")) == ["first"]
    assert texts(run("print('second')")) == ["second"]
    assert texts(run("")) == []


@pytest.mark.parametrize("lines", [0, 1])
def test_smaller_limits_of_lines(run, lines):
    found = texts(run("print('a')\nprint('b')", limits=Limits(log_lines=lines)))
    assert found == [*["a", "b"][:lines], f"the log is cut here: over {lines} lines"]
