"""Schedules in the admin."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuthEvent
from jobs.models import Schedule
from jobs.schedules import ticks
from jobs.schedules.schedules import create_schedule
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.models import Run, RunStatus, Script, Trigger
from tests.admin.pages import CONFIRMED, list_of, page_of, text_of
from tests.client import Client

NEXT_TICKS = "/admin/jobs/schedule/next-ticks/"
FORM = {
    "name": "nightly report",
    "cron": "0 6 * * mon-fri",
    "time_zone": "Europe/Berlin",
    "is_enabled": "on",
    "body": '{"report":\r\n 1}',
    "overlap": "skip",
    "catch_up": "latest",
    "catch_up_window_seconds": "3600",
}


def add(client: Client, script: Script, **changes: str) -> Any:
    return client.post(list_of(Schedule, "add"), {**FORM, "script": str(script.pk), **changes})


def save(client: Client, schedule: Schedule, **changes: str) -> Any:
    return client.post(page_of(schedule), {**FORM, **changes})


@pytest.fixture
def schedule(acme_script: Script) -> Schedule:
    return create_schedule(acme_script, cron="0 * * * *", name="hourly", payload=b"order")


def test_bob_adds_a_schedule(as_bob: Client, acme_script: Script) -> None:
    response = add(as_bob, acme_script)
    schedule = Schedule.objects.get()
    assert response.status_code == 302
    assert (schedule.script, schedule.organisation) == (acme_script, acme_script.organisation)
    assert (schedule.cron, schedule.time_zone) == ("0 6 * * MON-FRI", "Europe/Berlin")
    assert bytes(schedule.payload) == b'{"report":\n 1}'
    assert schedule.next_tick_at is not None
    event = AuthEvent.objects.get(kind="schedule.created")
    assert (event.actor_label, event.subject_label) == ("bob@example.com", "nightly report")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cron": "0 6 * *"}, "Enter five fields"),
        ({"cron": "0 0 30 2 *"}, "The day of month is not valid, or never comes."),
        ({"time_zone": "../etc/passwd"}, "Select a valid choice."),
        ({"body": "x" * 65_537}, "Enter at most 65,536 bytes."),
        ({"overlap": "sometimes"}, "Select a valid choice."),
        ({"catch_up_window_seconds": "604801"}, "less than or equal to 604800"),
    ],
)
def test_errors_appear_in_the_form_and_nothing_is_saved(
    as_bob: Client, acme_script: Script, changes: dict[str, str], message: str
) -> None:
    response = add(as_bob, acme_script, **changes)
    assert response.status_code == 200
    assert message in text_of(response)
    assert "nightly report" in text_of(response)
    assert not Schedule.objects.exists()


def test_bob_changes_and_disables_a_schedule(as_bob: Client, schedule: Schedule) -> None:
    page = text_of(as_bob.get(page_of(schedule)))
    assert "order</textarea>" in page
    assert save(as_bob, schedule).status_code == 302
    schedule.refresh_from_db()
    assert (schedule.name, schedule.cron) == ("nightly report", "0 6 * * MON-FRI")
    disabled = {name: value for name, value in FORM.items() if name != "is_enabled"}
    as_bob.post(page_of(schedule), disabled)
    schedule.refresh_from_db()
    assert not schedule.is_enabled
    assert schedule.next_tick_at is None


def test_the_script_of_a_schedule_stays(
    as_bob: Client, schedule: Schedule, globex_objects: dict[type, Any]
) -> None:
    save(as_bob, schedule, script=str(globex_objects[Script].pk))
    schedule.refresh_from_db()
    assert schedule.script_id != globex_objects[Script].pk


def test_scripts_of_others_cannot_be_chosen(
    as_bob: Client, acme_script: Script, globex_objects: dict[type, Any]
) -> None:
    response = add(as_bob, globex_objects[Script])
    assert response.status_code == 200
    assert not Schedule.objects.filter(name="nightly report").exists()
    assert add(as_bob, acme_script).status_code == 302


def test_bob_deletes_a_schedule(as_bob: Client, schedule: Schedule) -> None:
    as_bob.get(page_of(schedule, "delete"))
    assert Schedule.objects.exists()
    as_bob.post(page_of(schedule, "delete"), {**CONFIRMED, "post": "yes"})
    assert not Schedule.objects.exists()
    assert AuthEvent.objects.filter(kind="schedule.deleted").count() == 1


def test_run_now_asks_and_queues_a_run_of_bob(as_bob: Client, schedule: Schedule, bob: Any) -> None:
    as_bob.get(page_of(schedule, "run_now"))
    assert not Run.objects.exists()
    response = as_bob.post(page_of(schedule, "run_now"), CONFIRMED)
    run = Run.objects.get()
    assert response["Location"] == page_of(run)
    assert (run.status, run.trigger, run.started_by) == (RunStatus.QUEUED, Trigger.SCHEDULE, bob)


def test_run_now_says_why_it_does_not_run(as_bob: Client, schedule: Schedule) -> None:
    Script.objects.update(is_enabled=False)
    response = as_bob.post(page_of(schedule, "run_now"), CONFIRMED, follow=True)
    assert "The script is disabled. Enable it first." in text_of(response)
    assert "ticks are skipped as missed" in text_of(response)
    assert not Run.objects.exists()


# --- Next ticks -----------------------------------------------------------------------------------


def test_the_next_ticks_of_what_is_typed(as_bob: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 23, 12, tzinfo=UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)
    typed = {"cron": "0 6 * * MON-FRI", "time_zone": "Europe/Berlin"}
    found = as_bob.get(NEXT_TICKS, typed).json()
    assert found["problem"] == ""
    assert found["sentence"] == "At 06:00 on Monday through Friday (Europe/Berlin)"
    assert found["ticks"][0] == "Tue 24 Nov 2026, 06:00 CET (05:00 UTC)"
    assert len(found["ticks"]) == 5
    in_utc = as_bob.get(NEXT_TICKS, {**typed, "time_zone": "UTC"}).json()
    assert in_utc["ticks"][3] == "Fri 27 Nov 2026, 06:00 UTC"


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ({}, "Enter five fields above"),
        ({"cron": "* *", "time_zone": "UTC"}, "This has 2."),
        ({"cron": "61 * * * *", "time_zone": "UTC"}, "The minute is not valid"),
        ({"cron": "* * * * *", "time_zone": "<b>"}, "Enter a time zone"),
        ({"cron": "*" * 5_000, "time_zone": "UTC"}, "at most 200 characters"),
    ],
)
def test_typing_errors_are_told(as_bob: Client, typed: dict[str, str], problem: str) -> None:
    found = as_bob.get(NEXT_TICKS, typed).json()
    assert (found["ticks"], found["sentence"]) == ([], "")
    assert problem in found["problem"]


def test_the_next_ticks_are_for_administrators(as_erin: Client) -> None:
    assert as_erin.get(NEXT_TICKS, {"cron": "* * * * *", "time_zone": "UTC"}).status_code != 200
    assert Client().get(NEXT_TICKS).status_code == 302


def test_without_scripts_the_page_shows_them_after_saving(
    as_bob: Client, schedule: Schedule
) -> None:
    page = text_of(as_bob.get(page_of(schedule)))
    shown = page[page.index('id="next-ticks"') :].partition("</ol>")[0]
    assert shown.count("<li>") == 5
    assert f"At the start of every hour ({schedule.time_zone})" in shown
    add_page = text_of(as_bob.get(list_of(Schedule, "add")))
    assert "Enter five fields above" in add_page


# --- Ticks ----------------------------------------------------------------------------------------


def tick(schedule: Schedule, at: datetime) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(next_tick_at=at)
    run_due_schedules()


def test_the_page_and_the_list_show_ticks_with_their_runs(
    as_bob: Client, schedule: Schedule
) -> None:
    tick(schedule, timezone.now())
    tick(schedule, timezone.now())
    run = Run.objects.get()
    for page in (page_of(schedule), list_of(Schedule)):
        text = text_of(as_bob.get(page))
        assert f'class="mh-tick mh-tick-ran" href="{page_of(run)}"' in text
        assert "mh-tick-skipped-overlap" in text
    assert ": ran, run queued" in text_of(as_bob.get(page_of(schedule)))
    run.delete()
    assert page_of(run) not in text_of(as_bob.get(page_of(schedule)))


def test_all_that_is_kept_is_drawn(as_bob: Client, schedule: Schedule) -> None:
    Schedule.objects.filter(pk=schedule.pk).update(cron="* * * * *")
    tick(schedule, timezone.now() - timedelta(hours=6))
    text = text_of(as_bob.get(page_of(schedule)))
    assert text.count('role="img" title=') == ticks.KEPT_TICKS - 1
    assert text_of(as_bob.get(list_of(Schedule))).count('class="mh-tick ') == 10


def test_the_page_warns_of_runs_that_outlast_their_interval(
    as_bob: Client, schedule: Schedule
) -> None:
    tick(schedule, timezone.now())
    page = text_of(as_bob.get(page_of(schedule)))
    assert "outlast" not in page
    Run.objects.update(status="succeeded", duration_ms=2 * 3_600_000)
    page = text_of(as_bob.get(page_of(schedule)))
    assert "1 of the latest 1 took longer than to the next tick" in page
    assert "120 minutes" in page
