"""The timeline of a run."""

from datetime import UTC, datetime
from typing import Any

import pytest

from scripts_engine.admin.runs.presentation import hint_of_error
from scripts_engine.admin.runs.timeline import Mark, duration_text, offset_text, timeline_of
from scripts_engine.models import Run

pytestmark = pytest.mark.postgresql

STARTED = datetime(2026, 11, 20, 12, tzinfo=UTC)


def run_with(queued_ms: float = 25, duration_ms: float = 75, **fields: Any) -> Run:
    return Run(started_at=STARTED, queued_ms=queued_ms, duration_ms=duration_ms, **fields)


def call(offset_ms: float, duration_ms: float, error: str | None = None) -> dict[str, Any]:
    return {
        "name": "http.request",
        "summary": "GET http://shop.example/",
        "offsetMs": offset_ms,
        "durationMs": duration_ms,
        "error": error,
        "hint": "",
    }


def test_queue_time_comes_before_the_script() -> None:
    waited, ran = timeline_of(run_with()).bars

    assert (waited.kind, waited.x, waited.width, waited.took) == (
        "waited", "0.00%", "25.00%", "25.0 ms"
    )  # fmt: skip
    assert (ran.kind, ran.x, ran.width, ran.took) == ("ran", "25.00%", "75.00%", "75.0 ms")


def test_a_call_is_placed_at_its_time() -> None:
    bar = timeline_of(run_with(host_calls=[call(25, 40)])).bars[2]

    assert (bar.kind, bar.label, bar.when, bar.took) == (
        "call", "GET http://shop.example/", "+25.0 ms", "40.0 ms"
    )  # fmt: skip
    assert (bar.x, bar.width) == ("50.00%", "40.00%")


def test_a_call_that_failed_says_why() -> None:
    bar = timeline_of(run_with(host_calls=[call(0, 1, "no such host")])).bars[2]

    assert (bar.kind, bar.error) == ("failed", "no such host")


def test_a_call_shows_its_subject_and_the_setting_concerned() -> None:
    more = {"summary": "GET a.example/stock", "hint": "set this"}
    bar = timeline_of(run_with(host_calls=[call(0, 1, "refused") | more])).bars[2]

    assert (bar.label, bar.error, bar.hint) == ("GET a.example/stock", "refused", "set this")


def test_the_hint_of_the_last_call_whose_error_ended_the_script_is_shown() -> None:
    calls = [
        call(0, 1, "http.get: refused") | {"hint": "first"},
        call(1, 1, "http.get: refused") | {"hint": "second"},
        call(2, 1, "store.get: other") | {"hint": "third"},
        call(3, 1),
    ]

    failed = run_with(host_calls=calls, error_message="order:1: http.get: refused")
    assert hint_of_error(failed) == "second"
    assert hint_of_error(run_with(host_calls=calls, error_message="order:1: boom")) == ""
    assert hint_of_error(run_with(host_calls=calls)) == ""


def test_very_short_calls_stay_visible() -> None:
    bar = timeline_of(run_with(host_calls=[call(75, 0)])).bars[2]

    assert (bar.x, bar.width) == ("99.50%", "0.50%")


def test_a_line_of_the_log_is_a_tick() -> None:
    logs = [{"at": STARTED.timestamp() + 0.025, "level": "warn", "text": "low stock"}]

    drawn = timeline_of(run_with(logs=logs))

    assert drawn.logged_lines == 1
    assert (drawn.ticks[0].level, drawn.ticks[0].x) == ("warn", "50.00%")
    assert drawn.ticks[0].title == "+25.0 ms warn: low stock"


def test_clock_skew_stays_within_the_timeline() -> None:
    logs = [{"at": STARTED.timestamp() + 9, "level": "info", "text": "late"}]

    drawn = timeline_of(run_with(logs=logs, host_calls=[call(-500, 9_000)]))

    assert drawn.ticks[0].x == "100.00%"
    assert (drawn.bars[2].x, drawn.bars[2].width) == ("0.00%", "100.00%")


def test_a_thousand_calls_and_lines_are_not_all_drawn() -> None:
    logs = [{"at": STARTED.timestamp(), "level": "info", "text": ""}] * 1000

    drawn = timeline_of(run_with(logs=logs, host_calls=[call(0, 0)] * 1000))

    assert (len(drawn.bars), drawn.hidden_calls) == (102, 900)
    assert (len(drawn.ticks), drawn.logged_lines) == (200, 1000)


def test_the_axis_has_round_marks() -> None:
    assert timeline_of(run_with()).marks == [
        Mark("25.00%", "0 ms", "middle"),
        Mark("75.00%", "50 ms", "middle"),
    ]
    assert [mark.label for mark in timeline_of(run_with(9, 2)).marks] == ["−5 ms", "0 ms"]
    assert [mark.label for mark in timeline_of(run_with(0, 4100)).marks] == ["0 ms", "2 s", "4 s"]


@pytest.mark.parametrize("duration_ms", [0, 0.001, 25_000])
def test_any_duration_can_be_drawn(duration_ms: float) -> None:
    assert timeline_of(run_with(0, duration_ms)).marks[0].label == "0 ms"


def test_times_are_written_for_people() -> None:
    assert [duration_text(ms) for ms in (0.04, 12.345, 1500)] == ["0.0 ms", "12.3 ms", "1.50 s"]
    assert [offset_text(ms) for ms in (-1.5, 0, 2)] == ["−1.5 ms", "+0.0 ms", "+2.0 ms"]
