"""Schedules are created, changed and deleted within their limits, and the audit log tells it."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.audit import person
from accounts.models import AuthEvent, AuthEventKind, Organisation, User
from core.database.ids import first_id_at
from core.http.origin import Origin
from jobs.audit_kinds import JobEvent
from jobs.models import Overlap, QueueEntry, Schedule
from jobs.queue.queue_limit import QueueFullError
from jobs.schedules import saving
from jobs.schedules.schedules import (
    create_schedule,
    delete_schedule,
    long_runs,
    run_schedule_now,
    update_schedule,
)
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Run, RunStatus, Script, Trigger
from scripts_engine.runs.problems import OrganisationInactiveError
from scripts_engine.runs.spec import NOBODY, Author
from tests.factories import make_script
from tests.jobs.schedules.conftest import Clock, outcomes_of

pytestmark = pytest.mark.django_db
MakeSchedule = Callable[..., Schedule]


def events(*kinds: AuthEventKind) -> list[tuple[str, str]]:
    rows = AuthEvent.objects.filter(kind__in=kinds).order_by("id")
    return [(event.kind, event.reason) for event in rows]


def test_a_schedule_has_its_defaults_and_its_next_tick(clock: Clock, script: Script) -> None:
    schedule = create_schedule(script, cron=" 0 12  * * mon-fri", time_zone="Europe/Berlin")
    schedule.refresh_from_db()
    assert schedule.cron == "0 12 * * MON-FRI"
    assert schedule.organisation_id == script.organisation_id
    assert (schedule.overlap, schedule.catch_up, schedule.catch_up_window_seconds) == (
        "skip",
        "latest",
        3600,
    )
    assert schedule.is_enabled
    assert f"{schedule.next_tick_at:%H:%M}" == "11:00"
    assert schedule.last_tick_at is None
    assert events(JobEvent.SCHEDULE_CREATED) == [("schedule.created", "")]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"cron": "* * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"time_zone": "../etc/passwd"}, "time_zone"),
        ({"time_zone": "Z" * 100}, "time_zone"),
        ({"payload": b"x" * (64 * 1024 + 1)}, "payload"),
        ({"name": "n" * 201}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"overlap": "sometimes"}, "overlap"),
        ({"catch_up": "some"}, "catch_up"),
        ({"catch_up_window_seconds": -1}, "catch_up_window_seconds"),
        ({"catch_up_window_seconds": 7 * 86_400 + 1}, "catch_up_window_seconds"),
    ],
)
def test_bad_input_is_refused_by_field(
    clock: Clock, script: Script, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        create_schedule(script, **{"cron": "* * * * *", **fields})
    assert list(refused.value.message_dict) == [field]
    assert not Schedule.objects.exists()

    schedule = create_schedule(script, cron="* * * * *")
    with pytest.raises(ValidationError) as refused:
        update_schedule(schedule, **fields)
    assert list(refused.value.message_dict) == [field]
    assert events(JobEvent.SCHEDULE_CHANGED) == []


def test_a_payload_of_64_kib_fits(clock: Clock, script: Script) -> None:
    schedule = create_schedule(script, cron="* * * * *", payload=b"x" * 64 * 1024)
    schedule.refresh_from_db()
    assert len(schedule.payload) == 65_536


def test_a_script_of_another_organisation_is_refused(
    clock: Clock, every_ten_minutes: MakeSchedule, globex: Organisation
) -> None:
    schedule = every_ten_minutes()
    with pytest.raises(ValidationError) as refused:
        update_schedule(schedule, script=make_script(globex))
    assert list(refused.value.message_dict) == ["script"]


def test_an_organisation_has_so_many_schedules(
    clock: Clock,
    every_ten_minutes: MakeSchedule,
    globex: Organisation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(saving, "MAX_SCHEDULES", 2)
    first, _ = every_ten_minutes(), every_ten_minutes()
    with pytest.raises(ValidationError, match="at most 2 schedules"):
        every_ten_minutes()
    create_schedule(make_script(globex), cron="* * * * *")
    delete_schedule(first)
    every_ten_minutes()


def test_the_audit_log_names_what_changed(
    clock: Clock, every_ten_minutes: MakeSchedule, bob: User
) -> None:
    schedule = every_ten_minutes(name="report", payload=b"secret")
    update_schedule(schedule, name="nightly", payload=b"other", origin=Origin(actor=person(bob)))
    update_schedule(schedule, name="nightly")
    delete_schedule(schedule, origin=Origin(client_address="192.0.2.7"))
    delete_schedule(schedule)
    assert events(JobEvent.SCHEDULE_CHANGED, JobEvent.SCHEDULE_DELETED) == [
        ("schedule.changed", "name, payload"),
        ("schedule.deleted", ""),
    ]
    changed = AuthEvent.objects.get(kind=JobEvent.SCHEDULE_CHANGED)
    assert (changed.user, changed.subject_label) == (bob, "nightly")


def test_other_changes_leave_the_next_tick(clock: Clock, every_ten_minutes: MakeSchedule) -> None:
    schedule = every_ten_minutes()
    clock.set("10:00:05")
    assert update_schedule(schedule, name="late").next_tick_at == schedule.next_tick_at
    run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "ran"}


def test_another_cron_or_zone_goes_on_from_now(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes()
    clock.set("10:30:30")
    changed = update_schedule(schedule, cron="0 * * * *")
    assert f"{changed.next_tick_at:%H:%M}" == "11:00"
    changed = update_schedule(schedule, time_zone="Asia/Kathmandu")
    assert f"{changed.next_tick_at:%H:%M}" == "11:15"


def test_a_disabled_schedule_has_no_next_tick_and_drops_the_waiting_one(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes(overlap=Overlap.BUFFER_ONE)
    for time in ("10:00:00", "10:10:00"):
        clock.set(time)
        run_due_schedules()
    disabled = update_schedule(schedule, is_enabled=False)
    assert disabled.next_tick_at is None
    assert disabled.buffered_tick_at is None
    assert outcomes_of(schedule) == {"10:00": "ran", "10:10": "skipped-overlap"}
    assert update_schedule(schedule, cron="5 * * * *").next_tick_at is None


def test_queued_runs_outlive_their_schedule(clock: Clock, every_ten_minutes: MakeSchedule) -> None:
    schedule = every_ten_minutes()
    clock.set("10:00:00")
    run_due_schedules()
    delete_schedule(schedule)
    assert Run.objects.get().schedule_id == schedule.pk
    assert QueueEntry.objects.get().schedule_id is None


def test_schedules_are_deleted_with_their_script(
    clock: Clock, every_ten_minutes: MakeSchedule, script: Script, acme: Organisation
) -> None:
    every_ten_minutes()
    kept = create_schedule(make_script(acme), cron="* * * * *")
    delete_script(script)
    assert list(Schedule.objects.all()) == [kept]


# --- Run now --------------------------------------------------------------------------------------


def test_run_now_queues_a_run_beside_the_ticks(
    clock: Clock, every_ten_minutes: MakeSchedule, bob: User
) -> None:
    schedule = every_ten_minutes(payload=b"now")
    origin = Origin(client_address="192.0.2.7")
    run = run_schedule_now(schedule, author=Author(user=bob), origin=origin)
    assert (run.status, run.trigger, run.scheduled_at) == (
        RunStatus.QUEUED,
        Trigger.SCHEDULE,
        None,
    )
    assert (run.schedule_id, run.started_by, run.client_address) == (
        schedule.pk,
        bob,
        "192.0.2.7",
    )
    assert bytes(run.request_body) == b"now"
    schedule.refresh_from_db()
    assert f"{schedule.next_tick_at:%H:%M}" == "10:00"
    clock.set("10:00:00")
    run_due_schedules()
    assert outcomes_of(schedule) == {"10:00": "skipped-overlap"}


def test_run_now_needs_a_script_that_runs(
    clock: Clock, every_ten_minutes: MakeSchedule, script: Script, settings: Any
) -> None:
    schedule = every_ten_minutes()
    schedule.script = update_script(script, author=NOBODY, is_enabled=False)
    with pytest.raises(ValidationError, match="disabled"):
        run_schedule_now(schedule, author=NOBODY)
    schedule.script = update_script(script, author=NOBODY, is_enabled=True)
    settings.QUEUE_MAX_WAITING = 0
    with pytest.raises(QueueFullError):
        run_schedule_now(schedule, author=NOBODY)
    schedule.organisation.is_active = False
    with pytest.raises(OrganisationInactiveError):
        run_schedule_now(schedule, author=NOBODY)
    assert not Run.objects.exists()


# --- Long runs ------------------------------------------------------------------------------------


def test_runs_that_end_before_the_next_tick_are_not_long(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes()
    clock.set("10:00:00")
    assert long_runs(schedule) is None
    make_run(schedule, clock, minutes=9)
    assert long_runs(schedule) is None


def test_runs_whose_attempts_outlast_the_next_tick_are_long(
    clock: Clock, every_ten_minutes: MakeSchedule
) -> None:
    schedule = every_ten_minutes()
    clock.set("10:00:00")
    make_run(schedule, clock, minutes=1)
    first = make_run(schedule, clock, minutes=1)
    make_run(schedule, clock, minutes=15, first_run=first)
    found = long_runs(schedule)
    assert found is not None
    assert (found.long, found.ticks) == (1, 2)
    assert abs(found.longest - timedelta(minutes=15)) < timedelta(seconds=1)


def test_a_late_run_is_not_a_long_run(clock: Clock, every_ten_minutes: MakeSchedule) -> None:
    schedule = every_ten_minutes()
    clock.set("10:00:00")
    make_run(schedule, clock, minutes=1, tick_ago=timedelta(minutes=30))
    assert long_runs(schedule) is None


def make_run(
    schedule: Schedule,
    clock: Clock,
    *,
    minutes: int,
    first_run: Run | None = None,
    tick_ago: timedelta = timedelta(),
) -> Run:
    """A run that was queued now, and will have ended so many minutes later."""
    run = Run(
        id=uuid.UUID(int=first_id_at(clock.now).int | uuid.uuid4().int % 2**62),
        organisation=schedule.organisation,
        script=schedule.script,
        script_version=schedule.script.current_version,
        trigger=Trigger.SCHEDULE,
        status=RunStatus.SUCCEEDED,
        started_at=clock.now,
        queued_ms=0,
        duration_ms=minutes * 60_000,
        response_status=202,
        schedule_id=schedule.pk,
        scheduled_at=clock.now - tick_ago,
        first_run=first_run,
    )
    run.save()
    return run
