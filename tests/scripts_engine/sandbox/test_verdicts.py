"""Retry and Fail, as a script returns them."""

from __future__ import annotations

import pytest

from scripts_engine.sandbox.contract import Fail, Retry
from scripts_engine.sandbox.limits import MAX_MESSAGE_BYTES


@pytest.mark.parametrize(
    ("source", "verdict", "message"),
    [
        ("Retry{after = 5, reason = 'closed'}", Retry(5.0, "closed"), "closed"),
        ("Retry{after = 0.25}", Retry(0.25, ""), "The script returned Retry without a reason"),
        ("Retry{after = 0, reason = 'é'}", Retry(0.0, "é"), "é"),
        ("Retry{after = 86400, reason = 'r'}", Retry(86_400.0, "r"), "r"),
        ("Retry{reason = 'closed'}", Retry(None, "closed"), "closed"),
        ("Retry{}", Retry(None, ""), "The script returned Retry without a reason"),
        ("Fail{reason = 'no id'}", Fail("no id"), "no id"),
        ("Fail{}", Fail(""), "The script returned Fail without a reason"),
    ],
)
def test_a_verdict_is_a_failure_with_its_reason(run, source, verdict, message):
    outcome = run(f"print('before') return {source}")
    assert (outcome.kind, outcome.reply, outcome.verdict) == ("failed", None, verdict)
    assert (outcome.error.message, outcome.error.line) == (message, None)
    assert [line.text for line in outcome.logs] == ["before"]


@pytest.mark.parametrize(
    "source",
    ["return 1", "return {after = 1}", "error('boom')", "error(Retry{})", "Retry{} return 1"],
)
def test_any_other_end_has_no_verdict(run, source):
    assert run(source).verdict is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("Retry{after = -1}", "Retry: after must be a number of seconds from 0 to 86400"),
        ("Retry{after = 86400.5}", "Retry: after must be a number of seconds from 0 to 86400"),
        ("Retry{after = 'x'}", "Retry: after must be a number of seconds from 0 to 86400"),
        ("Retry{after = '5'}", "Retry: after must be a number of seconds from 0 to 86400"),
        ("Retry{after = 0/0}", "Retry: after must be a number of seconds from 0 to 86400"),
        ("Retry{after = math.huge}", "Retry: after must be a number of seconds from 0 to 86400"),
        ("Retry{reason = 7}", "Retry: reason must be a string"),
        ("Retry{seconds = 7}", "Retry: unknown field seconds"),
        ("Retry{'closed'}", "Retry: unknown field 1"),
        ("Retry()", "Retry: table expected, got nil"),
        ("Retry(5)", "Retry: table expected, got number"),
        ("Fail{after = 5}", "Fail: unknown field after"),
        ("Fail{reason = {}}", "Fail: reason must be a string"),
        ("Fail('no id')", "Fail: table expected, got string"),
    ],
)
def test_an_invalid_verdict_is_an_error_in_its_line(run, source, message):
    outcome = run(f"\nlocal verdict = {source}\nreturn verdict")
    assert (outcome.kind, outcome.verdict) == ("failed", None)
    assert (outcome.error.message, outcome.error.line) == (f"demo:2: {message}", 2)


@pytest.mark.parametrize("name", ["Retry", "Fail"])
def test_a_long_reason_is_cut(run, name):
    outcome = run(f"return {name}{{reason = ('r'):rep(1000000)}}")
    assert len(outcome.verdict.reason) == len(outcome.error.message) == MAX_MESSAGE_BYTES


def test_the_next_run_in_the_process_is_not_affected(run):
    assert run("return Retry{after = 1}").verdict == Retry(1.0, "")
    assert run("return 'done'").reply.body == b"done"
