"""Statistics of recent runs, from runs at known times."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Organisation
from scripts_engine import recent_runs
from scripts_engine.models import Run, Trigger
from scripts_engine.models.run import OUTCOMES
from tests import factories
from tests.factories import hook_that
from tests.query_plans import plan_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MORNING = NOON - timedelta(hours=3, minutes=30)


def at(hour: int, minute: int, second: int = 0) -> datetime:
    return NOON.replace(hour=hour, minute=minute, second=second)


def test_hours_are_those_of_the_clock_but_for_the_ends() -> None:
    hours = list(recent_runs.hours_between(at(8, 30), at(11, 15)))

    assert hours == [
        (at(8, 30), at(9, 0)),
        (at(9, 0), at(10, 0)),
        (at(10, 0), at(11, 0)),
        (at(11, 0), at(11, 15)),
    ]


def test_runs_are_counted_by_hour_and_outcome(acme: Organisation) -> None:
    hook = hook_that(acme)
    factories.make_past_run(hook, at(8, 29, 59))
    factories.make_past_run(hook, at(8, 30))
    factories.make_past_run(hook, at(9, 59, 59))
    factories.make_past_run(hook, at(9, 10), "failed")
    factories.make_past_run(hook, at(9, 20), "failed")
    factories.make_past_run(hook, at(10, 0), "timed-out")
    factories.make_past_run(hook, at(11, 59), "out-of-memory")
    factories.make_past_run(hook, at(12, 0), "failed")

    hours = recent_runs.runs_by_hour(Run.objects.all(), MORNING, NOON)

    assert [(hour.since, tuple(hour.counts.values())) for hour in hours] == [
        (at(8, 30), (1, 0, 0, 0, 0)),
        (at(9, 0), (1, 2, 0, 0, 0)),
        (at(10, 0), (0, 0, 1, 0, 0)),
        (at(11, 0), (0, 0, 0, 1, 0)),
    ]
    assert [*hours[0].counts] == [status.value for status in OUTCOMES]


def test_only_the_runs_given_are_counted(acme: Organisation, globex: Organisation) -> None:
    factories.make_past_run(hook_that(acme), at(9, 0))
    factories.make_past_run(hook_that(globex), at(9, 1), "failed")

    (hour,) = recent_runs.runs_by_hour(Run.objects.of_organisation(acme), at(9, 0), at(10, 0))

    assert (hour.counts["succeeded"], hour.counts["failed"]) == (1, 0)


def test_runs_of_no_organisation_are_none(db: None) -> None:
    nobodys = Run.objects.filter(organisation__in=[])

    (hour,) = recent_runs.runs_by_hour(nobodys, at(9, 0), at(10, 0))

    assert hour.total == 0


def test_a_day_is_counted_in_one_statement(acme: Organisation) -> None:
    runs = Run.objects.of_organisation(acme)
    with CaptureQueriesContext(connection) as queries:
        assert len(recent_runs.runs_by_hour(runs, NOON - timedelta(days=1), NOON)) == 24

    assert len(queries) == 1


def test_percentiles_are_durations_that_runs_took(acme: Organisation) -> None:
    hook = hook_that(acme)
    for number in range(1, 101):
        factories.make_past_run(hook, at(9, 0) + timedelta(seconds=number), duration_ms=number)

    durations = recent_runs.durations_of(Run.objects.all(), MORNING, NOON)

    assert durations == recent_runs.Durations(p50_ms=50, p95_ms=95, sample_size=100)


def test_percentiles_are_of_the_newest_runs(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = hook_that(acme)
    factories.make_past_run(hook, at(9, 0), duration_ms=900)
    factories.make_past_run(hook, at(9, 1), duration_ms=10)
    factories.make_past_run(hook, at(9, 2), duration_ms=20)
    monkeypatch.setattr(recent_runs, "NEWEST_DURATIONS", 2)

    durations = recent_runs.durations_of(Run.objects.all(), MORNING, NOON)

    assert durations == recent_runs.Durations(p50_ms=10, p95_ms=20, sample_size=2)


def test_without_runs_there_are_no_percentiles(db: None) -> None:
    assert recent_runs.durations_of(Run.objects.all(), MORNING, NOON) is None


def test_what_has_not_ended_does_not_count(acme: Organisation) -> None:
    hook = hook_that(acme)
    factories.make_past_run(hook, at(9, 1))
    for status in ("queued", "running", "cancelled"):
        factories.make_past_run(hook, at(9, 2), status)
    factories.make_past_run(hook, at(9, 3), "lost", duration_ms=900)

    (hour,) = recent_runs.runs_by_hour(Run.objects.all(), at(9, 0), at(10, 0))
    durations = recent_runs.durations_of(Run.objects.all(), at(9, 0), at(10, 0))

    assert tuple(hour.counts.values()) == (1, 0, 0, 0, 1)
    assert hour.total == 5
    assert durations is not None
    assert durations.sample_size == 2


def test_drafts_and_test_events_do_not_count(acme: Organisation) -> None:
    hook = hook_that(acme)
    factories.make_past_run(hook, at(9, 6), trigger=Trigger.TEST, duration_ms=900)
    factories.make_past_run(hook, at(9, 7), "failed", trigger=Trigger.TEST, duration_ms=900)
    factories.make_past_run(hook, at(9, 1))
    factories.make_past_run(hook, at(9, 2), "failed")
    factories.make_past_draft(hook, at(9, 3), duration_ms=900)
    factories.make_past_draft(hook, at(9, 4), "failed", duration_ms=900)
    factories.make_past_draft(hook, at(9, 5), "timed-out", duration_ms=900)

    (hour,) = recent_runs.runs_by_hour(Run.objects.all(), at(9, 0), at(10, 0))
    durations = recent_runs.durations_of(Run.objects.all(), at(9, 0), at(10, 0))

    assert tuple(hour.counts.values()) == (1, 1, 0, 0, 0)
    assert durations == recent_runs.Durations(p50_ms=1, p95_ms=1, sample_size=2)


@pytest.mark.parametrize("column", ["organisation_id", "script_id", "hook_id"])
def test_activity_is_without_drafts_and_test_events(acme: Organisation, column: str) -> None:
    hook = hook_that(acme)
    factories.make_past_run(hook, at(9, 0), "failed")
    newest = factories.make_past_run(hook, at(9, 1))
    factories.make_past_draft(hook, at(9, 2), "failed")
    factories.make_past_run(hook, at(9, 3), "failed", script_version=None, is_draft=True)
    factories.make_past_run(hook, at(9, 4), "failed", trigger=Trigger.TEST)
    row = {"organisation_id": acme, "script_id": hook.script, "hook_id": hook}[column]

    with CaptureQueriesContext(connection) as captured:
        found = recent_runs.activity_of([row], column, MORNING)

    assert found == {row.pk: recent_runs.Activity(newest, runs=2, failed=1)}
    last = captured[-2]["sql"]
    assert f"run_tried_{column.removesuffix('_id')}" in plan_of(last)
