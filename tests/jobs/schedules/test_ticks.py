"""Each tick of a schedule runs once, or leaves the reason why it did not."""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from cronsim import CronSim
from django.db import connection
from prometheus_client import REGISTRY

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from jobs.models import CatchUp, Overlap, QueueEntry, Schedule
from jobs.queue.pause import pause_organisation
from jobs.schedules import cron, ticks
from jobs.schedules.schedules import create_schedule, update_schedule
from jobs.schedules.ticks import restart_schedules_far_ahead, run_due_schedules
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Run, RunStatus, Script, Trigger
from scripts_engine.runs.spec import NOBODY
from tests.factories import make_script
from tests.jobs.schedules.conftest import Clock, end_runs, outcomes_of

pytestmark = pytest.mark.django_db
MakeSchedule = Callable[..., Schedule]


def test_a_tick_queues_a_run_with_the_payload(
    clock: Clock, every_ten_minutes: MakeSchedule, script: Script
) -> None:
    schedule = every_ten_minutes(payload=b'{"report": 1}')
    assert run_due_schedules() == 0
    clock.set("10:00:00")
    assert run_due_schedules() == 1

    run = Run.objects.get()
    assert (run.status, run.trigger) == (RunStatus.QUEUED, Trigger.SCHEDULE)
    assert (run.script_id, run.schedule_id, run.scheduled_at) == (
        script.pk,
        schedule.pk,
        clock.now,
    )
    assert bytes(run.request_body) == b'{"report": 1}'
    assert QueueEntry.objects.get().schedule_id == schedule.pk
    schedule.refresh_from_db()
    assert schedule.last_tick_at == clock.now
    assert schedule.next_tick_at == clock.now + timedelta(minutes=10)
    assert [(tick.outcome, tick.run_id) for tick in schedule.ticks.all()] == [("ran", run.pk)]


def test_a_tick_runs_once(clock: Clock, every_ten_minutes: MakeSchedule) -> None:
    every_ten_minutes(overlap=Overlap.ALLOW_ALL)
    clock.set("10:00:05")
    assert run_due_schedules() == 1
    assert run_due_schedules() == 0
    assert Run.objects.count() == 1


def test_the_next_tick_follows_from_the_tick_and_not_from_the_run(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes()
    clock.set("10:00:50")
    run_due_schedules()
    schedule.refresh_from_db()
    assert f"{schedule.next_tick_at:%H:%M:%S}" == "10:10:00"


def test_the_limit_bounds_a_round_and_the_longest_due_are_first(
    clock: Clock, every_ten_minutes: MakeSchedule, script: Script
) -> None:
    later = every_ten_minutes()
    first = create_schedule(script, cron="* * * * *")
    Schedule.objects.filter(pk=first.pk).update(next_tick_at=clock.now)
    clock.set("10:00:01")
    assert run_due_schedules(limit=1) == 1
    assert first.ticks.exists()
    assert not later.ticks.exists()
    assert run_due_schedules(limit=1) == 1
    assert later.ticks.exists()


# --- Overlap --------------------------------------------------------------------------------------


def test_skip_leaves_out_ticks_while_a_run_is_in_progress(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes()
    for time in ("10:00:00", "10:10:00", "10:20:00"):
        clock.set(time)
        run_due_schedules()
    assert outcomes_of(schedule) == {
        "10:00": "ran",
        "10:10": "skipped-overlap",
        "10:20": "skipped-overlap",
    }
    end_runs()
    clock.set("10:30:00")
    run_due_schedules()
    assert outcomes_of(schedule)["10:30"] == "ran"


def test_buffer_one_runs_one_tick_when_the_run_has_ended(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes(overlap=Overlap.BUFFER_ONE)
    for time in ("10:00:00", "10:10:00", "10:20:00"):
        clock.set(time)
        run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "ran", "10:20": "skipped-overlap"}
    clock.set("10:20:30")
    assert run_due_schedules() == 0

    end_runs()
    assert run_due_schedules() == 1
    assert outcomes_of(schedule) == {"10:00": "ran", "10:10": "late", "10:20": "skipped-overlap"}
    assert f"{Run.objects.first().scheduled_at:%H:%M}" == "10:10"  # type: ignore[union-attr]
    assert run_due_schedules() == 0


def test_allow_all_runs_every_tick(clock: Clock, every_ten_minutes: MakeSchedule) -> None:
    schedule = every_ten_minutes(overlap=Overlap.ALLOW_ALL)
    for time in ("10:00:00", "10:10:00"):
        clock.set(time)
        run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "ran", "10:10": "ran"}


# --- Catch-up -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catch_up", "outcomes"),
    [
        (CatchUp.NONE, ["skipped-missed", "skipped-missed", "skipped-missed", "skipped-missed"]),
        (CatchUp.LATEST, ["skipped-missed", "skipped-missed", "skipped-missed", "late"]),
        (CatchUp.ALL, ["skipped-missed", "late", "late", "late"]),
    ],
)
def test_what_was_missed_is_caught_up_within_the_window(
    clock: Clock, every_ten_minutes: MakeSchedule, catch_up: str, outcomes: list[str]
) -> None:
    schedule = every_ten_minutes(
        catch_up=catch_up, catch_up_window_seconds=1800, overlap=Overlap.ALLOW_ALL
    )
    clock.set("10:35:00")
    assert run_due_schedules() == 1
    assert list(outcomes_of(schedule).values()) == outcomes
    schedule.refresh_from_db()
    assert f"{schedule.next_tick_at:%H:%M}" == "10:40"


def test_latest_is_the_tick_on_time_if_there_is_one(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes()
    clock.set("10:10:05")
    run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "skipped-missed", "10:10": "ran"}


def test_without_catch_up_a_minute_late_is_on_time(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes(catch_up=CatchUp.NONE, catch_up_window_seconds=0)
    clock.set("10:01:00")
    run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "ran"}


def test_catching_up_all_is_subject_to_overlap(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes(catch_up=CatchUp.ALL, overlap=Overlap.SKIP)
    clock.set("10:25:00")
    run_due_schedules()
    assert list(outcomes_of(schedule).values()) == ["late", "skipped-overlap", "skipped-overlap"]


def test_at_most_a_hundred_ticks_are_caught_up(clock: Clock, script: Script) -> None:
    schedule = create_schedule(
        script,
        cron="* * * * *",
        catch_up=CatchUp.ALL,
        catch_up_window_seconds=86_400,
        overlap=Overlap.ALLOW_ALL,
    )
    clock.go_on(hours=3)
    numbers = []
    while run_due_schedules():
        numbers.append(Run.objects.count())
    # Others have their turn between some and some more.
    assert numbers == [20, 40, 60, 80, 100, 101]
    assert schedule.ticks.filter(outcome="late").count() == 100
    assert schedule.ticks.filter(outcome="skipped-missed").count() == 79


def test_the_newest_outcomes_are_kept_after_a_long_downtime(clock: Clock, script: Script) -> None:
    schedule = create_schedule(script, cron="* * * * *")
    clock.go_on(days=40)
    run_due_schedules()
    newest = schedule.ticks.order_by("-tick_at")
    assert len(newest) == ticks.KEPT_TICKS
    assert clock.now - newest[0].tick_at < timedelta(minutes=1)
    clock.go_on(minutes=1)
    end_runs()
    run_due_schedules()
    assert schedule.ticks.count() == ticks.KEPT_TICKS
    schedule.refresh_from_db()
    assert schedule.next_tick_at is not None
    assert clock.now < schedule.next_tick_at <= clock.now + timedelta(minutes=1)


@pytest.mark.django_db(transaction=True)
def test_catching_up_a_week_computes_few_ticks_and_none_while_others_wait(
    clock: Clock, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    were_others_waiting: list[bool] = []

    class Watched(CronSim):
        def __next__(self) -> datetime:
            were_others_waiting.append(connection.in_atomic_block)
            return super().__next__()

    schedule = create_schedule(script, cron="* * * * *")
    clock.go_on(days=7)
    monkeypatch.setattr(cron, "CronSim", Watched)
    assert run_due_schedules() == 1

    assert schedule.ticks.count() == ticks.KEPT_TICKS
    # Of 10,080.
    assert len(were_others_waiting) < 2 * ticks.KEPT_TICKS
    assert not any(were_others_waiting)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "change", [{"cron": "0 12 * * *"}, {"time_zone": "Asia/Kolkata"}, {"next_tick_at": None}]
)
def test_a_schedule_that_changes_while_its_ticks_are_computed_is_left_for_the_next_look(
    clock: Clock,
    every_ten_minutes: MakeSchedule,
    change: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schedule = every_ten_minutes()

    class Changing(CronSim):
        def __next__(self) -> datetime:
            Schedule.objects.update(**change)
            return super().__next__()

    clock.set("10:00:00")
    monkeypatch.setattr(cron, "CronSim", Changing)
    assert run_due_schedules() == 0

    assert not schedule.ticks.exists()
    assert not Run.objects.exists()


def test_ticks_while_paused_are_not_missed(clock: Clock, every_ten_minutes: MakeSchedule) -> None:
    schedule = every_ten_minutes(catch_up=CatchUp.ALL)
    update_schedule(schedule, is_enabled=False)
    clock.set("10:35:00")
    assert run_due_schedules() == 0
    update_schedule(schedule, is_enabled=True)
    assert run_due_schedules() == 0
    assert outcomes_of(schedule) == {}
    clock.set("10:40:00")
    run_due_schedules()
    assert outcomes_of(schedule) == {"10:40": "ran"}


# --- Scripts that do not run ----------------------------------------------------------------------


def test_ticks_of_a_disabled_script_are_missed_for_good(
    clock: Clock, every_ten_minutes: MakeSchedule, script: Script
) -> None:
    schedule = every_ten_minutes(catch_up=CatchUp.ALL, overlap=Overlap.ALLOW_ALL)
    update_script(script, author=NOBODY, is_enabled=False)
    for time in ("10:00:00", "10:10:00"):
        clock.set(time)
        run_due_schedules()
    update_script(script, author=NOBODY, is_enabled=True)
    clock.set("10:20:00")
    run_due_schedules()
    assert outcomes_of(schedule) == {
        "10:00": "skipped-missed",
        "10:10": "skipped-missed",
        "10:20": "ran",
    }


def test_ticks_of_a_script_without_a_live_version_are_missed(
    clock: Clock, every_ten_minutes: MakeSchedule, script: Script
) -> None:
    schedule = every_ten_minutes()
    Script.objects.filter(pk=script.pk).update(current_version=None)
    clock.set("10:00:00")
    run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "skipped-missed"}
    assert not Run.objects.exists()


def test_ticks_of_an_inactive_organisation_are_missed(
    clock: Clock, every_ten_minutes: MakeSchedule, acme: Organisation
) -> None:
    schedule = every_ten_minutes()
    Organisation.objects.filter(pk=acme.pk).update(is_active=False)
    clock.set("10:00:00")
    run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "skipped-missed"}
    assert not Run.objects.exists()


def test_a_deleted_script_ends_the_ticks(
    clock: Clock, every_ten_minutes: MakeSchedule, script: Script
) -> None:
    every_ten_minutes()
    delete_script(script)
    clock.set("10:00:00")
    assert run_due_schedules() == 0
    assert not Schedule.objects.exists()
    assert not Run.objects.exists()


def test_runs_wait_while_the_queue_is_paused(
    clock: Clock, every_ten_minutes: MakeSchedule, acme: Organisation
) -> None:
    schedule = every_ten_minutes()
    pause_organisation(acme)
    for time in ("10:00:00", "10:10:00"):
        clock.set(time)
        run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "ran", "10:10": "skipped-overlap"}
    assert QueueEntry.objects.waiting().count() == 1


# --- Faults ---------------------------------------------------------------------------------------


def test_a_tick_waits_for_room_in_the_queue(
    clock: Clock, every_ten_minutes: MakeSchedule, globex: Organisation, settings: Any
) -> None:
    settings.QUEUE_MAX_WAITING = 1
    waiting = every_ten_minutes(name="waiting", overlap=Overlap.ALLOW_ALL)
    also = every_ten_minutes(name="also waiting")
    elsewhere = create_schedule(make_script(globex), cron="*/10 * * * *")
    clock.set("10:00:00")
    # The limit bounds what is done, so full queues do not hold up other organisations.
    assert run_due_schedules(limit=2) == 2
    assert outcomes_of(elsewhere) == {"10:00": "ran"}
    assert sorted([*outcomes_of(waiting), *outcomes_of(also)]) == ["10:00"]

    end_runs()
    clock.set("10:00:40")
    run_due_schedules()
    assert outcomes_of(waiting) == outcomes_of(also) == {"10:00": "ran"}


def test_ticks_before_a_full_queue_are_done_and_the_others_wait(
    clock: Clock, every_ten_minutes: MakeSchedule, settings: Any
) -> None:
    settings.QUEUE_MAX_WAITING = 2
    schedule = every_ten_minutes(catch_up=CatchUp.ALL, overlap=Overlap.ALLOW_ALL)
    clock.set("10:35:00")
    run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "late", "10:10": "late"}
    schedule.refresh_from_db()
    assert f"{schedule.next_tick_at:%H:%M}" == "10:20"
    end_runs()
    run_due_schedules()
    assert list(outcomes_of(schedule)) == ["10:00", "10:10", "10:20", "10:30"]


def test_a_database_error_delays_a_tick_and_no_other(
    clock: Clock,
    every_ten_minutes: MakeSchedule,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    late, other = every_ten_minutes(name="late"), every_ten_minutes(name="other")
    enqueue = ticks.enqueue

    def fail_once(work: Any) -> Any:
        if work.schedule_id == late.pk:
            raise DatabaseUnavailable("disk full")
        return enqueue(work)

    with monkeypatch.context() as patch:
        patch.setattr(ticks, "enqueue", fail_once)
        clock.set("10:00:00")
        assert run_due_schedules() == 1
    assert outcomes_of(late) == {}
    assert outcomes_of(other) == {"10:00": "ran"}
    assert "disk full" in caplog.text

    clock.set("10:00:01")
    run_due_schedules()
    assert outcomes_of(late) == {"10:00": "ran"}


def test_an_unavailable_database_is_told_to_the_runner(
    clock: Clock, every_ten_minutes: MakeSchedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules = [every_ten_minutes() for _ in range(4)]

    def fail(work: Any) -> Any:
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(ticks, "enqueue", fail)
    clock.set("10:00:00")
    with pytest.raises(DatabaseUnavailable):
        run_due_schedules()
    assert [outcomes_of(schedule) for schedule in schedules] == [{}, {}, {}, {}]


def test_a_clock_set_back_runs_no_tick_twice_and_ticks_go_on(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes(overlap=Overlap.ALLOW_ALL)
    for time in ("10:00:00", "10:10:00", "10:00:00", "10:10:00", "10:20:00"):
        clock.set(time)
        run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "ran", "10:10": "ran", "10:20": "ran"}
    assert Run.objects.count() == 3


def test_an_enabled_schedule_skips_ticks_that_ran_before_the_clock_was_set_back(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes(overlap=Overlap.ALLOW_ALL)
    clock.set("10:00:00")
    run_due_schedules()
    clock.set("09:55:00")
    update_schedule(update_schedule(schedule, is_enabled=False), is_enabled=True)
    clock.set("10:00:00")
    run_due_schedules()
    assert Run.objects.count() == 1
    schedule.refresh_from_db()
    assert f"{schedule.next_tick_at:%H:%M}" == "10:10"


def test_ticks_do_not_wait_for_years_after_the_clock_was_wrong(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes()
    clock.go_on(days=1000)
    run_due_schedules()
    clock.go_on(days=-1000)
    end_runs()
    assert restart_schedules_far_ahead() == 1
    assert restart_schedules_far_ahead() == 0
    clock.set("10:00:00")
    run_due_schedules()
    newest = Run.objects.order_by("-id")[0]
    assert (newest.schedule_id, newest.scheduled_at) == (schedule.pk, clock.now)


def test_a_schedule_that_fails_holds_up_no_other(
    clock: Clock, every_ten_minutes: MakeSchedule, caplog: pytest.LogCaptureFixture
) -> None:
    broken, other = every_ten_minutes(), every_ten_minutes()
    # As if the server's time zone database no longer had it.
    Schedule.objects.filter(pk=broken.pk).update(time_zone="Mars/Olympus")
    clock.set("10:00:00")
    assert run_due_schedules() == 1
    assert outcomes_of(other) == {"10:00": "ran"}
    assert f"Schedule {broken.pk} is late" in caplog.text
    Schedule.objects.filter(pk=broken.pk).update(time_zone="UTC")
    run_due_schedules()
    assert outcomes_of(broken) == {"10:00": "ran"}


# --- Metrics --------------------------------------------------------------------------------------


def test_ticks_are_counted_after_the_commit(
    clock: Clock, every_ten_minutes: MakeSchedule, django_capture_on_commit_callbacks: Any
) -> None:
    every_ten_minutes()
    clock.set("10:00:03")
    names = ("moonhook_schedule_ticks_total", "moonhook_schedule_lag_seconds_sum")
    before = [_sample(names[0], outcome="ran"), _sample(names[1])]
    with django_capture_on_commit_callbacks(execute=True):
        run_due_schedules()
        assert _sample(names[0], outcome="ran") == before[0]
    assert _sample(names[0], outcome="ran") == before[0] + 1
    assert _sample(names[1]) == before[1] + 3


def _sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_ids_of_runs_differ(clock: Clock, every_ten_minutes: MakeSchedule) -> None:
    schedule = every_ten_minutes(catch_up=CatchUp.ALL, overlap=Overlap.ALLOW_ALL)
    clock.set("10:25:00")
    run_due_schedules()
    run_ids = set(schedule.ticks.values_list("run_id", flat=True))
    assert run_ids == set(Run.objects.values_list("pk", flat=True))
    assert all(isinstance(run_id, uuid.UUID) for run_id in run_ids)
