"""The alert script is told of what breaks, through the queue and in the sandbox."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from accounts.alerts import alert
from accounts.flows.api_keys import issue_api_key
from accounts.flows.notices import warn_of_expiry
from accounts.models import AuthEvent, Organisation, RateCounter, User
from accounts.scopes import EVERYTHING, Scope
from core.http.origin import NOWHERE
from hooks.models import Hook
from jobs.alerts import MAX_WAITING
from jobs.audit_kinds import JobAlert
from jobs.models import QueueEntry, Schedule
from jobs.queue.replay import replay_runs
from jobs.schedules.schedules import create_schedule
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.flows.alert_script import alert_script_of, set_alert_script
from scripts_engine.flows.failure_notices import tell_of_failures
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Release, Run, RunStatus, Script, Trigger
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.execution import run_again
from scripts_engine.runs.spec import NOBODY
from tests.concurrency import at_once
from tests.factories import (
    admin_graphql,
    hook_that,
    make_past_run,
    make_script,
    reply_of,
    set_rules,
    token_with,
    work,
)
from tests.working_queue import queue, work_all

pytestmark = pytest.mark.django_db

GIVES_UP = 'return Fail{reason = "no stock"}'
SET = "mutation($script: ID) { setAlertScript(script: $script) { alertScript { id name } } }"


@pytest.fixture
def listener(acme: Organisation) -> Script:
    """Acme's alert script, which replies with what it is told of."""
    return listening(acme)


def listening(acme: Organisation, source: str = 'return params.get("body")') -> Script:
    script = make_script(acme, source, name="alerts")
    set_alert_script(acme, script)
    return script


def told() -> list[dict[str, Any]]:
    """What the alert script has been told of, in that order, once the queue is worked off."""
    work_all()
    runs = Run.objects.filter(trigger=Trigger.ALERT).order_by("pk")
    return [json.loads(reply_of(run)) for run in runs]


def kinds_told() -> list[str]:
    return [each["type"] for each in told()]


def a_quarter_of_an_hour_later() -> None:
    RateCounter.objects.filter(key__startswith="first/alert/").update(ends_at=0)


def fails(hook: Hook, **fields: Any) -> Run:
    return make_past_run(hook, timezone.now(), "failed", error_message="line 1: boom", **fields)


def gives_up(hook: Hook) -> Run:
    """A run of the hook that is a dead letter, worked by the queue."""
    run = queue(hook)
    work_all()
    run.refresh_from_db()
    assert run.is_dead_letter
    return run


def missed(schedule: Schedule) -> None:
    """Deals with ticks of 20 minutes in which no runner was there."""
    ago = timezone.now() - timedelta(minutes=20)
    Schedule.objects.filter(pk=schedule.pk).update(next_tick_at=ago, last_tick_at=ago)
    run_due_schedules()


# --- What is told ---------------------------------------------------------------------------------


def test_a_script_that_fails_and_works_again_is_told(listener: Script, hook: Hook) -> None:
    failed = fails(hook)
    tell_of_failures()
    works = make_past_run(hook, timezone.now())
    tell_of_failures()

    page = f"/admin/scripts_engine/script/{hook.script_id}/change/"
    failing, recovered = [each for each in told() if each["type"].startswith("script.")]
    assert failing["type"] == "script.failing"
    assert failing["version"] == 1
    assert failing["at"].endswith("Z")
    assert failing["organisation"] == {"id": str(hook.script.organisation_id), "name": "Acme"}
    assert failing["subject"]["id"] == str(hook.script_id)
    assert failing["subject"]["name"] == "echo"
    assert failing["subject"]["url"].endswith(page)
    assert failing["data"] == {"run": str(failed.pk), "error": "line 1: boom"}
    assert recovered["type"] == "script.recovered"
    assert recovered["data"] == {"run": str(works.pk)}


def test_a_dead_letter_is_told(listener: Script, acme: Organisation) -> None:
    run = gives_up(hook_that(acme, GIVES_UP, "ship"))

    [alert] = [each for each in told() if each["type"] == "dead_letter"]
    assert alert["subject"]["name"] == "ship"
    assert alert["data"] == {"run": str(run.pk), "attempts": 1, "error": "no stock"}


def test_missed_ticks_are_told(listener: Script, script: Script) -> None:
    schedule = create_schedule(script, cron="* * * * *", name="nightly")
    missed(schedule)

    [alert] = [each for each in told() if each["type"] == "schedule.missed"]
    assert alert["subject"]["name"] == "nightly"
    assert alert["data"]["missed"] >= 19
    assert alert["data"]["first"] < alert["data"]["last"]
    assert alert["data"]["script"] == {"id": str(script.pk), "name": "echo"}


def test_a_schedule_of_a_disabled_script_misses_nothing(listener: Script, script: Script) -> None:
    schedule = create_schedule(script, cron="* * * * *", name="nightly")
    update_script(script, author=NOBODY, is_enabled=False)
    missed(schedule)

    assert "schedule.missed" not in kinds_told()


def test_an_expiring_key_is_told(listener: Script, acme: Organisation) -> None:
    in_five_days = timezone.now() + timedelta(days=5)
    issued = issue_api_key(acme, name="till", expires_at=in_five_days)
    warn_of_expiry()

    [alert] = [each for each in told() if each["type"] == "api_key.expiring"]
    assert alert["subject"]["name"] == "till"
    assert alert["data"]["days"] == 7
    assert alert["data"]["expiresAt"].startswith(f"{in_five_days:%Y-%m-%dT%H:%M}")
    assert issued.secret not in json.dumps(alert)


def test_a_release_is_told(listener: Script, acme: Organisation) -> None:
    script = make_script(acme, name="ship")
    update_script(script, author=NOBODY, source="return 2", note="faster")

    [created, changed] = [each for each in told() if each["type"] == "release.published"]
    release = Release.objects.first()
    assert release is not None
    assert changed["subject"]["id"] == str(release.pk)
    assert changed["data"] == {
        "number": release.number,
        "by": "Moonhook",
        "note": "faster",
        "changes": [{"kind": "Script", "name": "ship", "action": "Update"}],
        "changesTotal": 1,
    }
    assert created["data"]["changes"] == [{"kind": "Script", "name": "ship", "action": "Create"}]


def test_without_an_alert_script_nothing_is_told(acme: Organisation, hook: Hook) -> None:
    fails(hook)
    told_of = tell_of_failures()
    gives_up(hook_that(acme, GIVES_UP, "ship"))

    assert (told_of, told()) == (0, [])


def test_another_organisation_is_told_nothing(listener: Script, globex: Organisation) -> None:
    gives_up(hook_that(globex, GIVES_UP, "ship"))

    assert told() == []


def test_mails_are_sent_beside_alerts(
    listener: Script, acme: Organisation, hook: Hook, bob: User
) -> None:
    Organisation.objects.filter(pk=acme.pk).update(failure_mails=True)
    fails(hook)

    assert tell_of_failures() == 2
    work()
    assert [message.subject for message in mail.outbox] == ["The script “echo” fails"]
    assert "script.failing" in kinds_told()


# --- Not too often --------------------------------------------------------------------------------


def test_a_kind_and_subject_is_told_once_in_a_quarter_of_an_hour(
    listener: Script, acme: Organisation
) -> None:
    ship, pack = hook_that(acme, GIVES_UP, "ship"), hook_that(acme, GIVES_UP, "pack")
    for hook in (ship, ship, pack):
        gives_up(hook)
    within = [each["subject"]["name"] for each in told() if each["type"] == "dead_letter"]
    a_quarter_of_an_hour_later()
    gives_up(ship)

    assert within == ["ship", "pack"]
    after = [each["subject"]["name"] for each in told() if each["type"] == "dead_letter"]
    assert after == ["ship", "pack", "ship"]


def test_news_of_a_script_waits_for_its_turn(listener: Script, hook: Hook) -> None:
    fails(hook)
    tell_of_failures()
    make_past_run(hook, timezone.now())
    tell_of_failures()
    fails(hook)
    too_early = tell_of_failures()
    a_quarter_of_an_hour_later()

    assert (too_early, tell_of_failures(), tell_of_failures()) == (0, 1, 0)
    scripts = [kind for kind in kinds_told() if kind.startswith("script.")]
    assert scripts == ["script.failing", "script.recovered", "script.failing"]


@pytest.mark.django_db(transaction=True)
def test_of_several_processes_one_tells(acme: Organisation) -> None:
    listening(acme)
    hook = hook_that(acme, name="ship")
    QueueEntry.objects.all().delete()
    Run.objects.all().delete()
    fails(hook)

    assert sum(at_once(4, lambda _: tell_of_failures())) == 1
    assert QueueEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_alert_that_several_processes_raise_is_told_once(acme: Organisation) -> None:
    listening(acme)
    script = make_script(acme, name="ship")
    QueueEntry.objects.all().delete()
    others = [make_script(acme, name=name) for name in ("pack", "pick")]
    QueueEntry.objects.all().delete()

    def raise_alerts(number: int) -> int:
        subjects = sorted([script, *others], key=lambda each: each.pk)
        # In the order of ``finish``, or two transactions could wait for each other.
        with transaction.atomic():
            return sum(alert(JobAlert.DEAD_LETTER, subject) for subject in subjects)

    assert sum(at_once(8, raise_alerts)) == 3
    assert QueueEntry.objects.count() == 3


@override_settings(QUEUE_MAX_WAITING=1)
def test_a_full_queue_loses_the_alert_and_nothing_else(
    acme: Organisation, listener: Script
) -> None:
    work_all()
    hook = hook_that(acme, GIVES_UP, "ship")
    Run.objects.filter(trigger=Trigger.ALERT).delete()
    queue(hook)
    script = make_script(acme, name="while the queue is full")

    assert Script.objects.filter(pk=script.pk).exists()
    assert not Run.objects.filter(trigger=Trigger.ALERT).exists()
    work_all()
    # What was not told does not count as told.
    assert [each["type"] for each in told()] == ["dead_letter"]


# --- What descends from an alert ------------------------------------------------------------------


def test_a_failing_alert_script_raises_no_alert(acme: Organisation, bob: User) -> None:
    listening(acme, GIVES_UP)
    make_script(acme, name="a release to tell of")
    work_all()
    tell_of_failures()
    work()

    [run] = Run.objects.all()
    assert (run.trigger, run.is_of_alert, run.is_dead_letter) == (Trigger.ALERT, True, True)
    # By mail, though the organisation has not asked for others.
    assert [message.subject for message in mail.outbox] == ["The script “alerts” fails"]


def test_what_an_alert_pushes_raises_no_alert(acme: Organisation, bob: User) -> None:
    make_script(acme, GIVES_UP, name="worker")
    listening(acme, 'queue.push("worker", params.get("body")); return "{}"')
    make_script(acme, name="a release to tell of")
    work_all()
    tell_of_failures()
    work()

    pushed = Run.objects.get(trigger=Trigger.QUEUE)
    assert (pushed.is_of_alert, pushed.is_dead_letter) == (True, True)
    assert Run.objects.filter(trigger=Trigger.ALERT).count() == 1
    assert [message.subject for message in mail.outbox] == ["The script “worker” fails"]


def test_a_replay_of_an_alert_raises_no_alert(acme: Organisation) -> None:
    listening(acme, GIVES_UP)
    make_script(acme, name="a release to tell of")
    [failed] = work_all()
    replay_runs([failed], author=NOBODY)
    [replayed] = work_all()

    assert (replayed.trigger, replayed.is_of_alert) == (Trigger.REPLAY, True)
    assert replayed.is_dead_letter
    assert Run.objects.filter(trigger=Trigger.ALERT).count() == 1


def test_what_a_replayed_alert_pushes_raises_no_alert(acme: Organisation) -> None:
    make_script(acme, GIVES_UP, name="worker")
    listening(acme, 'queue.push("worker", ""); return "{}"')
    make_script(acme, name="a release to tell of")
    [alerted, _] = work_all()
    again = run_again(alerted, author=NOBODY, client_address="")
    work_all()

    assert again.is_of_alert
    pushed = Run.objects.filter(trigger=Trigger.QUEUE)
    assert [run.is_of_alert for run in pushed] == [True, True]
    assert Run.objects.filter(trigger=Trigger.ALERT).count() == 1


def test_a_later_attempt_at_an_alert_raises_no_alert(acme: Organisation) -> None:
    listening(acme, 'error("down")')
    make_script(acme, name="a release to tell of")
    attempts = work_all()

    assert [run.attempt for run in attempts] == [1, 2, 3, 4, 5]
    assert all(run.is_of_alert for run in attempts)
    assert Run.objects.count() == 5


def test_a_script_that_an_alert_uses_is_told_of_by_its_other_runs(
    listener: Script, hook: Hook
) -> None:
    fails(hook, is_of_alert=True)
    by_mail = tell_of_failures()
    fails(hook)

    assert (by_mail, tell_of_failures()) == (1, 1)
    assert "script.failing" in kinds_told()


# --- Choosing it ----------------------------------------------------------------------------------


def test_a_program_chooses_the_alert_script_and_none(
    acme: Organisation, acme_token: str, script: Script
) -> None:
    chosen = admin_graphql(SET, acme_token, script=str(script.pk))
    read = admin_graphql("{ organisation { alertScript { name } } }", acme_token)
    removed = admin_graphql(SET, acme_token, script=None)

    name = {"id": str(script.pk), "name": "echo"}
    assert chosen.data == {"setAlertScript": {"alertScript": name}}
    assert read.data == {"organisation": {"alertScript": {"name": "echo"}}}
    assert removed.data == {"setAlertScript": {"alertScript": None}}
    events = AuthEvent.objects.filter(kind__startswith="alert-script.").order_by("pk")
    assert [(event.kind, event.reason) for event in events] == [
        ("alert-script.set", "echo"),
        ("alert-script.removed", ""),
    ]


def test_another_organisations_script_is_not_found(
    acme: Organisation, acme_token: str, globex: Organisation
) -> None:
    theirs = make_script(globex)
    answer = admin_graphql(SET, acme_token, script=str(theirs.pk))

    assert (answer.code, answer.data) == ("NOT_FOUND", None)
    assert alert_script_of(acme) is None


def test_a_library_is_refused(acme: Organisation, acme_token: str) -> None:
    library = make_script(acme, "return {}", is_library=True)
    answer = admin_graphql(SET, acme_token, script=str(library.pk))

    assert (answer.code, answer.errors[0]["extensions"]["field"]) == ("BAD_USER_INPUT", "script")
    assert alert_script_of(acme) is None


def test_a_key_without_all_scopes_chooses_none(acme: Organisation, script: Script) -> None:
    token = token_with(acme, Scope.READ_SCRIPTS, Scope.WRITE_HOOKS, Scope.PUBLISH)
    answer = admin_graphql(SET, token, script=str(script.pk))

    assert (answer.status, answer.code, answer.data) == (403, "FORBIDDEN", None)
    assert answer.errors[0]["extensions"]["scope"] == "All"
    assert alert_script_of(acme) is None


def test_a_renamed_alert_script_stays_chosen(listener: Script, acme: Organisation) -> None:
    update_script(listener, author=NOBODY, name="to chat")

    assert kinds_told() == ["release.published"]
    assert str(alert_script_of(acme)) == "to chat"


def test_a_disabled_alert_script_is_told_nothing_until_it_is_enabled(
    listener: Script, acme: Organisation
) -> None:
    update_script(listener, author=NOBODY, is_enabled=False)
    make_script(acme, name="not told")
    while_disabled = told()
    update_script(listener, author=NOBODY, is_enabled=True)

    assert while_disabled == []
    assert [each["data"]["changes"][0]["name"] for each in told()] == ["alerts"]


def test_a_deleted_alert_script_is_told_nothing_until_that_is_undone(
    listener: Script, acme: Organisation
) -> None:
    delete_script(listener)
    deletion = Release.objects.first()
    assert deletion is not None
    make_script(acme, name="not told")
    while_deleted = (alert_script_of(acme), told())
    undo_release(deletion, held=EVERYTHING, origin=NOWHERE)

    assert while_deleted == (None, [])
    assert alert_script_of(acme) == listener
    assert kinds_told() == ["release.published"]


# --- Walls ----------------------------------------------------------------------------------------


def test_a_test_event_raises_no_alert_and_is_no_dead_letter(
    acme: Organisation, listener: Script
) -> None:
    hook = hook_that(acme, GIVES_UP, "ship")
    set_rules(hook, reply_mode="accepted")
    work_all()
    before = len(told())
    narrow = token_with(acme, Scope.WRITE_HOOKS, Scope.RUN_SCRIPTS, Scope.READ_SCRIPTS)

    send = "mutation($hook: ID!) { sendTestEvent(hook: $hook) { status } }"
    assert admin_graphql(send, narrow, hook=str(hook.pk)).errors == []

    assert len(told()) == before
    assert Run.objects.get(trigger=Trigger.TEST).status == RunStatus.FAILED
    assert not Run.objects.dead_letters().exists()
    gives_up(hook)
    assert told()[-1]["type"] == "dead_letter"


def test_a_flood_of_releases_does_not_flood_the_queue(acme: Organisation, listener: Script) -> None:
    hook = hook_that(acme, name="ship")
    narrow = token_with(acme, Scope.WRITE_HOOKS, Scope.READ_SCRIPTS)
    switches = " ".join(
        f"a{number}: updateHook(id: $hook, enabled: {'true' if number % 2 else 'false'}) {{ id }}"
        for number in range(30)
    )

    for _ in range(3):
        document = "mutation($hook: ID!) { " + switches + " }"
        assert admin_graphql(document, narrow, hook=str(hook.pk)).errors == []

    assert Run.objects.filter(trigger=Trigger.ALERT).count() == MAX_WAITING == 60
    assert Release.objects.count() >= 90
    work_all()
    update_script(hook.script, author=NOBODY, source="return 2")
    assert told()[-1]["data"]["number"] == Release.objects.count()


def test_an_alert_about_a_key_shows_no_part_of_it(acme: Organisation, listener: Script) -> None:
    issued = issue_api_key(acme, name="till", expires_at=timezone.now() + timedelta(days=5))
    warn_of_expiry()

    [found] = [each for each in told() if each["type"] == "api_key.expiring"]
    assert found["subject"]["name"] == "till"
    assert issued.api_key.key not in json.dumps(found)


def test_no_alert_script_stays_none_when_the_deleted_one_returns(
    acme: Organisation, acme_token: str, listener: Script
) -> None:
    delete_script(listener)
    deletion = Release.objects.first()
    assert deletion is not None

    assert admin_graphql(SET, acme_token, script=None).errors == []
    undo_release(deletion, held=EVERYTHING, origin=NOWHERE)

    assert Script.objects.existing().filter(pk=listener.pk).exists()
    assert alert_script_of(acme) is None
    assert AuthEvent.objects.filter(kind="alert-script.removed").count() == 1
