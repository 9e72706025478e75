"""The pages of the queue: what waits, dead letters, and the story of a run."""

import re
import sys
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import AuthEvent, Organisation, Role, User
from core.admin.links import action_of, list_of, page_of
from hooks.models import Hook
from jobs.audit_kinds import JobEvent
from jobs.models import PausedQueue, QueueEntry
from jobs.queue import cancel
from jobs.queue.cancel import cancel_run
from jobs.queue.pause import pause_organisation, pause_script
from jobs.queue.replay import dismiss_dead_letters, replay_runs
from scripts_engine.models import Run, RunStatus, Script
from scripts_engine.runs.spec import NOBODY
from tests.admin.pages import CONFIRMED, logged_in, run_of, text_of
from tests.admin.roles import client_of
from tests.factories import event_with, hook_that, make_hook, make_organisation, make_script
from tests.query_plans import plan_of, scans_an_organisation
from tests.working_queue import make_due, queue, work_all, work_queue

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]
QUEUE = list_of(QueueEntry)
DEAD_LETTERS = list_of(Run, dead_letter="yes")


@pytest.fixture
def foreign() -> Hook:
    return make_hook(make_script(make_organisation("Globex"), "error('no')")).hook


def steer_by(client: Client, **fields: Any) -> Any:
    return client.post("/admin/jobs/queueentry/steer/", fields)


def act(client: Client, action: str, runs: list[Run], address: str = DEAD_LETTERS) -> Any:
    data = {"action": action, "_selected_action": [str(run.pk) for run in runs]}
    return client.post(address, data, follow=True)


def address_of(response: Any) -> str:
    """The page to which the answer led."""
    return str(response.redirect_chain[-1][0])


def dead_letter_of(hook: Hook) -> Run:
    queue(hook, max_attempts=1)
    (dead,) = work_all()
    return dead


def test_the_queue_says_how_much_waits(as_bob: Client, acme: Organisation) -> None:
    hook = hook_that(acme, "return 1")
    for _ in range(3):
        queue(hook)
    queue(hook, delay_seconds=3600)

    text = text_of(as_bob.get(QUEUE))

    assert "Acme" in text
    (share,) = as_bob.get(QUEUE).context["shares"]
    assert (share.waiting, share.running, share.is_paused) == (4, 0, False)
    assert "in 59\N{NO-BREAK SPACE}minutes" in text or "in 1\N{NO-BREAK SPACE}hour" in text


def test_a_run_in_the_queue_has_the_short_id_by_which_it_is_found(
    as_bob: Client, acme: Organisation
) -> None:
    run = queue(hook_that(acme, "return 1"))
    short = str(run.pk)[:13]

    assert f">{short}</a>" in text_of(as_bob.get(QUEUE))
    assert list(as_bob.get(list_of(Run), {"q": short}).context["cl"].result_list) == [run]
    assert str(run.pk) in text_of(as_bob.get("/admin/search/", {"s": short}))


def test_the_rows_of_the_queue_tell_when_they_change(as_bob: Client, acme: Organisation) -> None:
    def state() -> str:
        response = as_bob.get(QUEUE)
        found = re.search(r'id="queue-rows" data-live="([^"]*)"', text_of(response))
        assert found is not None
        return found[1]

    hook = hook_that(acme, "error('no')")
    assert state() == ""
    run = queue(hook, max_attempts=2)
    waits = state()
    assert (str(run.pk) in waits, state()) == (True, waits)
    QueueEntry.objects.update(lease_id=uuid4(), lease_ends_at=timezone.now())
    runs = state()
    QueueEntry.objects.update(lease_id=None, attempt=2)
    waits_again = state()
    make_due()
    QueueEntry.objects.update(due_at=timezone.now() + timedelta(hours=1))
    is_later = state()

    assert len({waits, runs, waits_again, is_later}) == 4


def test_the_queue_shows_no_other_organisation(
    as_bob: Client, as_root: Client, foreign: Hook
) -> None:
    queue(foreign)

    assert as_bob.get(QUEUE).context["shares"] == []
    assert "Globex" not in text_of(as_bob.get(QUEUE))
    (share,) = as_root.get(QUEUE).context["shares"]
    assert share.organisation == foreign.organisation


def test_an_administrator_pauses_and_resumes_the_queue(as_bob: Client, acme: Organisation) -> None:
    queue(hook_that(acme, "return 1"))
    steer_by(as_bob, organisation=acme.pk, pause="1")
    assert work_queue() == []
    assert "Paused" in text_of(as_bob.get(QUEUE))

    steer_by(as_bob, organisation=acme.pk, resume="1")

    assert len(work_queue()) == 1
    kinds = set(AuthEvent.objects.values_list("kind", flat=True))
    assert {JobEvent.QUEUE_PAUSED, JobEvent.QUEUE_RESUMED} <= kinds


def test_a_paused_script_is_listed_and_resumed(as_bob: Client, acme: Organisation) -> None:
    script = make_script(acme, name="paused one")
    steer_by(as_bob, script=script.pk, pause="1")
    assert "paused one" in text_of(as_bob.get(QUEUE))

    steer_by(as_bob, script=script.pk, resume="1")

    assert Script.objects.get(pk=script.pk).queue_paused_at is None


@pytest.mark.parametrize("kind", ["organisation", "script"])
def test_nobody_pauses_the_queue_of_another_organisation(
    as_bob: Client, foreign: Hook, kind: str
) -> None:
    target = foreign.organisation if kind == "organisation" else foreign.script

    steer_by(as_bob, **{kind: target.pk, "pause": "1"})

    assert not PausedQueue.objects.exists()
    assert not Script.objects.filter(queue_paused_at__isnull=False).exists()


@pytest.mark.parametrize("given", ["", "no id", str(UUID(int=0))])
def test_an_unknown_id_pauses_nothing(as_bob: Client, given: str) -> None:
    assert steer_by(as_bob, organisation=given, pause="1").status_code == 302
    assert not PausedQueue.objects.exists()


def test_reading_the_address_pauses_nothing(as_bob: Client, acme: Organisation) -> None:
    as_bob.get("/admin/jobs/queueentry/steer/", {"organisation": acme.pk, "pause": 1})

    assert not PausedQueue.objects.exists()


def test_selected_runs_are_cancelled(as_bob: Client, acme: Organisation) -> None:
    hook = hook_that(acme, "return 1")
    runs = [queue(hook), queue(hook)]

    text = text_of(act(as_bob, "cancel_selected", runs[:1], QUEUE))

    assert "Cancelled 1 run." in text
    assert [run.status for run in Run.objects.order_by("pk")] == ["cancelled", "queued"]


def test_payloads_of_selected_runs_are_not_read(
    as_bob: Client, acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread: list[set[str]] = []

    def cancel_and_note(run: Run, **options: Any) -> Run:
        unread.append(run.get_deferred_fields())
        return cancel_run(run, **options)

    monkeypatch.setattr(cancel, "cancel_run", cancel_and_note)
    run = queue(hook_that(acme, "return 1"))

    act(as_bob, "cancel_selected", [run], QUEUE)

    assert Run.objects.get().status == RunStatus.CANCELLED
    assert {"request_body", "request_headers"} <= unread[0]


def test_dead_letters_are_replayed_together(as_bob: Client, acme: Organisation) -> None:
    hook = hook_that(acme, "error('no')")
    dead = [dead_letter_of(hook) for _ in range(3)]

    text = text_of(act(as_bob, "replay_selected", dead[:2]))

    assert "2 replays: 2 to go." in text
    waiting = Run.objects.filter(status=RunStatus.QUEUED)
    assert {run.replay_of_id for run in waiting} == {run.pk for run in dead[:2]}
    assert {run.trigger for run in waiting} == {"replay"}
    assert list(Run.objects.dead_letters()) == [dead[2]]


def test_many_replays_are_followed_until_all_have_ended(as_bob: Client, acme: Organisation) -> None:
    source = """
    if params.get("trigger") ~= "replay" or params.get("body") == "bad" then error("no") end
    if params.get("body") == "late" and params.get("attempt") == "1" then error("not yet") end
    """
    hook = hook_that(acme, source)
    for body in (b"good", b"late", b"bad", b"unwanted", b"waits"):
        run = queue(hook, max_attempts=1)
        Run.objects.filter(pk=run.pk).update(request_body=body)
    work_queue(5)
    dead = list(Run.objects.dead_letters().order_by("pk"))
    address = address_of(act(as_bob, "replay_selected", dead))
    replays = Run.objects.filter(trigger="replay").order_by("pk")
    assert [run.replay_of for run in replays] == dead
    _, _, bad, unwanted, waits = replays
    QueueEntry.objects.filter(pk=bad.pk).update(max_attempts=1)
    QueueEntry.objects.filter(pk=waits.pk).update(due_at=timezone.now() + timedelta(hours=1))
    cancel_run(unwanted)

    before = as_bob.get(address).context["progress"]
    work_queue(5)
    between = as_bob.get(address).context["progress"]
    make_due()
    work_all()
    last = as_bob.get(address)
    after = last.context["progress"]

    assert before.text == "5 replays: 1 cancelled, 4 to go."
    assert between.text == "5 replays: 1 succeeded, 1 failed for good, 1 cancelled, 2 to go."
    assert after.text == "5 replays: 3 succeeded, 1 failed for good, 1 cancelled."
    assert after.parts == [("succeeded", 0, 3), ("failed", 3, 1), ("cancelled", 4, 1)]
    assert [before.ended, between.ended, after.ended] == [1, 3, 5]
    assert after.text in text_of(last)
    assert "data-live" not in text_of(last)


def test_what_waits_of_many_replays_is_cancelled(as_bob: Client, acme: Organisation) -> None:
    hook = hook_that(acme, "if params.get('trigger') == 'hook' then error('no') end return Retry{}")
    dead = [dead_letter_of(hook) for _ in range(4)]
    address = address_of(act(as_bob, "replay_selected", dead[:3]))
    act(as_bob, "replay_selected", dead[3:])
    work_queue(1)

    page = as_bob.post(address.replace("replays/", "replays/cancel/"), follow=True)

    assert "Cancelled 3 runs." in text_of(page)
    assert "3 replays: 3 cancelled." in text_of(page)
    replays = Run.objects.filter(trigger="replay").order_by("pk")
    shown = [(run.replay_of, run.attempt, run.status) for run in replays]
    assert shown == [
        (dead[0], 1, "failed"),
        (dead[1], 1, "cancelled"),
        (dead[2], 1, "cancelled"),
        (dead[3], 1, "queued"),
        (dead[0], 2, "cancelled"),
    ]
    cancelled = AuthEvent.objects.filter(kind=JobEvent.RUN_CANCELLED)
    assert {event.organisation for event in cancelled} == {acme}


def test_the_replays_of_others_are_not_followed(
    as_bob: Client, as_root: Client, acme: Organisation, foreign: Hook
) -> None:
    own, dead = dead_letter_of(hook_that(acme, "error('no')")), dead_letter_of(foreign)
    answers = [act(as_root, "replay_selected", [run]) for run in (own, dead)]
    for address in map(address_of, answers):
        assert as_root.get(address).status_code == 200
        assert as_bob.get(address).status_code == 404
        assert as_bob.post(address.replace("replays/", "replays/cancel/")).status_code == 404
    assert Run.objects.filter(status=RunStatus.QUEUED).count() == 2


@pytest.mark.parametrize(
    "query",
    ["", "?first=x&last=y", "?first={0}", "?first={0}&last={0}&q=1", "?first={1}&last={1}"],
)
def test_only_a_range_of_replays_is_followed(
    as_bob: Client, acme: Organisation, query: str
) -> None:
    dead = dead_letter_of(hook_that(acme, "error('no')"))
    act(as_bob, "replay_selected", [dead])
    replay = Run.objects.get(trigger="replay")

    address = list_of(Run, "replays") + query.format(replay.pk, dead.pk)

    assert as_bob.get(address).status_code == 404
    assert as_bob.post(list_of(Run, "replays", first=replay.pk, last=replay.pk)).status_code == 405


def test_dead_letters_that_were_replayed_meanwhile_are_not_replayed_again(
    as_bob: Client, acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = hook_that(acme, "error('no')")
    dead = [dead_letter_of(hook) for _ in range(2)]

    def replay_later(runs: Any, **options: Any) -> Any:
        act(as_bob, "dismiss_selected", dead[:1])
        return replay_runs(runs, **options)

    monkeypatch.setattr(sys.modules["jobs.admin.dead_letters"], "replay_runs", replay_later)

    text = text_of(act(as_bob, "replay_selected", dead))

    assert f"Nothing was replayed. Run {dead[0].pk} is not a dead letter any more." in text
    assert not QueueEntry.objects.exists()
    # In this test the dismissal is undone with the replay's transaction.
    assert set(Run.objects.dead_letters()) == set(dead)


def test_too_many_dead_letters_are_not_replayed(
    as_bob: Client, acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["jobs.admin.dead_letters"], "MAX_REPLAYS", 1)
    hook = hook_that(acme, "error('no')")
    dead = [dead_letter_of(hook) for _ in range(2)]

    assert "Nothing was done" in text_of(act(as_bob, "replay_selected", dead))

    assert Run.objects.dead_letters().count() == 2
    assert not QueueEntry.objects.exists()


def test_one_without_its_payload_keeps_all_from_being_replayed(
    as_bob: Client, acme: Organisation
) -> None:
    hook = hook_that(acme, "error('no')")
    dead = [dead_letter_of(hook) for _ in range(2)]
    Run.objects.filter(pk=dead[0].pk).update(payload_removed_at=timezone.now())

    assert "has no payload any more" in text_of(act(as_bob, "replay_selected", dead))

    assert not QueueEntry.objects.exists()
    assert Run.objects.dead_letters().count() == 2


def test_dead_letters_are_dismissed(as_bob: Client, acme: Organisation) -> None:
    dead = dead_letter_of(hook_that(acme, "error('no')"))

    assert "Dismissed 1 dead letter." in text_of(act(as_bob, "dismiss_selected", [dead]))

    assert not Run.objects.dead_letters().exists()
    assert AuthEvent.objects.filter(kind=JobEvent.RUNS_DISMISSED).count() == 1


@pytest.mark.parametrize("action", ["replay_selected", "dismiss_selected"])
def test_dead_letters_of_others_stay_as_they_are(
    as_bob: Client, acme: Organisation, foreign: Hook, action: str
) -> None:
    own, dead = dead_letter_of(hook_that(acme, "error('no')")), dead_letter_of(foreign)

    act(as_bob, action, [dead])

    assert set(Run.objects.dead_letters()) == {own, dead}
    assert not QueueEntry.objects.exists()


def test_the_list_of_all_runs_offers_no_such_action(as_bob: Client, acme: Organisation) -> None:
    dead = dead_letter_of(hook_that(acme, "error('no')"))

    act(as_bob, "replay_selected", [dead], list_of(Run))

    assert not QueueEntry.objects.exists()


def test_a_run_tells_of_its_attempts(as_bob: Client, acme: Organisation) -> None:
    queue(hook_that(acme, "error('attempt ' .. params.get('attempt'))"), max_attempts=3)
    work_queue()
    (first, second) = Run.objects.order_by("pk")

    text = text_of(as_bob.get(page_of(second)))

    assert "Attempt 1" in text
    assert "Attempt 2" in text
    assert "attempt 1" in text
    assert page_of(first) in text
    assert "Due in" in text
    # The payload of the first attempt.
    assert "payload" in text
    assert "The script has not run." in text


def test_a_run_tells_what_pushed_it_and_what_it_pushed(as_bob: Client, acme: Organisation) -> None:
    make_script(acme, "return 1", "ship")
    queue(hook_that(acme, "queue.push('ship', '') queue.push('ship', '')"))
    (pushing, *_) = work_queue()
    pushed = Run.objects.filter(pushed_by=pushing.pk)
    assert len(pushed) == 2

    of_pushing = text_of(as_bob.get(page_of(pushing)))
    of_pushed = text_of(as_bob.get(page_of(pushed[0])))

    assert all(page_of(run) in of_pushing for run in pushed)
    assert page_of(pushing) in of_pushed
    assert "Pushed by" in of_pushed


def test_what_belongs_to_a_run_is_found_by_its_indexes(as_bob: Client, acme: Organisation) -> None:
    make_script(acme, "error('no')", "ship")
    queue(hook_that(acme, "queue.push('ship', '', {attempts = 2})"))
    _, _, second = work_all()

    with CaptureQueriesContext(connection) as captured:
        as_bob.get(page_of(second))

    selects = [each["sql"] for each in captured if 'FROM "scripts_engine_run"' in each["sql"]]
    plans = "".join(map(plan_of, selects))
    assert "run_later_attempt" in plans
    assert "run_pushed" in plans
    assert "run_replay" in plans
    assert [each for each in selects if scans_an_organisation(each)] == []


def test_of_pushed_work_the_newest_attempt_is_shown(as_bob: Client, acme: Organisation) -> None:
    make_script(acme, "error('no')", "ship")
    queue(hook_that(acme, "queue.push('ship', '', {attempts = 2})"))
    pushing, first, second = work_all()

    text = text_of(as_bob.get(page_of(pushing)))

    assert page_of(second) in text
    assert page_of(first) not in text


@pytest.mark.parametrize(
    ("obstacle", "text"),
    [
        ("", "Due now: it starts as soon as a slot of the queue is free."),
        ("script is paused", "The queue of its script is paused."),
        ("organisation is paused", "The queue of its organisation is paused."),
        ("script is disabled", "Its script is disabled."),
        ("organisation is off", "Its organisation is switched off."),
    ],
)
def test_the_page_of_a_waiting_run_says_what_it_waits_for(
    as_root: Client, acme: Organisation, obstacle: str, text: str
) -> None:
    run = queue(hook_that(acme, "return 1"))
    if obstacle == "script is paused":
        pause_script(run.script)
    elif obstacle == "organisation is paused":
        pause_organisation(acme)
    elif obstacle == "script is disabled":
        Script.objects.update(is_enabled=False)
    elif obstacle:
        Organisation.objects.filter(pk=acme.pk).update(is_active=False)

    assert text in text_of(as_root.get(page_of(run)))


def test_a_waiting_run_is_cancelled_on_its_page(as_bob: Client, acme: Organisation) -> None:
    run = queue(hook_that(acme, "return 1"))
    assert action_of(run, "cancel") in text_of(as_bob.get(page_of(run)))

    as_bob.post(action_of(run, "cancel"))

    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED
    assert "does not wait" in text_of(as_bob.post(action_of(run, "cancel"), follow=True))


def test_an_ended_run_is_replayed_from_its_page(as_bob: Client, acme: Organisation) -> None:
    dead = dead_letter_of(hook_that(acme, "error('no')"))

    as_bob.post(action_of(dead, "replay"))

    (entry,) = QueueEntry.objects.all()
    assert entry.run.replay_of_id == dead.pk
    assert bytes(entry.run.request_body) == b"payload"


def test_a_runs_page_offers_one_replay_and_says_what_it_does(
    as_bob: Client, acme: Organisation
) -> None:
    hook = hook_that(acme, "error('no')")
    direct, dead = run_of(hook), dead_letter_of(hook)

    of_direct, of_dead = text_of(as_bob.get(page_of(direct))), text_of(as_bob.get(page_of(dead)))

    assert "Replay runs this payload now with the live version" in of_direct
    assert action_of(direct, "again") in of_direct
    assert action_of(direct, "replay") not in of_direct
    assert "Replay queues this payload as new work" in of_dead
    assert "The dead letter is then settled." in of_dead
    assert action_of(dead, "replay") in of_dead
    assert action_of(dead, "again") not in of_dead


def test_a_viewer_is_offered_no_replay(acme: Organisation) -> None:
    hook = hook_that(acme, "error('no')")
    viewer = client_of(acme, Role.VIEWER)
    direct, dead = run_of(hook), dead_letter_of(hook)

    assert ">Replay" not in text_of(viewer.get(page_of(direct)))
    assert ">Replay" not in text_of(viewer.get(page_of(dead)))
    assert viewer.post(action_of(direct, "again")).status_code == 403
    assert viewer.post(action_of(dead, "replay")).status_code == 403
    assert set(Run.objects.dead_letters()) == {dead}
    assert Run.objects.count() == 2


def test_a_replayed_dead_letter_names_its_replay_and_the_outcome(
    as_bob: Client, acme: Organisation
) -> None:
    hook = hook_that(acme, "if params.get('trigger') ~= 'replay' then error('no') end")
    dead = dead_letter_of(hook)
    assert "Not replayed yet" in text_of(as_bob.get(page_of(dead)))

    as_bob.post(action_of(dead, "replay"))
    (replay,) = work_all()

    text = text_of(as_bob.get(page_of(dead)))
    assert "Not replayed yet" not in text
    assert f'Replayed by <a class="text-link" href="{page_of(replay)}">' in text
    assert "Succeeded" in text


def test_of_a_replay_the_last_attempt_is_named(as_bob: Client, acme: Organisation) -> None:
    dead = dead_letter_of(hook_that(acme, "error('no')"))
    replay_runs([dead], author=NOBODY)
    first, *_, last = work_all()

    (shown,) = as_bob.get(page_of(dead)).context["story"].replays

    assert shown.url == page_of(last) != page_of(first)


def test_an_earlier_attempt_names_the_replay_too(as_bob: Client, acme: Organisation) -> None:
    queue(hook_that(acme, "error('no')"), max_attempts=2)
    first, dead = work_all()
    (replay,) = replay_runs([dead], author=NOBODY)

    assert page_of(Run(pk=replay)) in text_of(as_bob.get(page_of(first)))


def test_a_dismissed_dead_letter_says_so(as_bob: Client, acme: Organisation) -> None:
    dead = dead_letter_of(hook_that(acme, "error('no')"))
    dismiss_dead_letters([dead])

    assert "Dismissed, or its replay is not kept any more" in text_of(as_bob.get(page_of(dead)))


@pytest.mark.parametrize("name", ["cancel", "replay"])
def test_runs_of_others_are_neither_cancelled_nor_replayed(
    as_bob: Client, foreign: Hook, name: str
) -> None:
    run = queue(foreign)

    assert as_bob.post(action_of(run, name)).status_code == 404
    assert as_bob.post(action_of(Run(pk=uuid4()), name)).status_code == 404

    run.refresh_from_db()
    assert (run.status, QueueEntry.objects.count()) == (RunStatus.QUEUED, 1)


@pytest.mark.parametrize("name", ["cancel", "replay"])
def test_reading_an_address_does_nothing(as_bob: Client, acme: Organisation, name: str) -> None:
    run = queue(hook_that(acme, "return 1"))

    assert as_bob.get(action_of(run, name)).status_code == 302

    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED


def test_dismissing_counts_only_dead_letters(acme: Organisation) -> None:
    dead = dead_letter_of(hook_that(acme, "error('no')"))

    assert dismiss_dead_letters([dead, dead]) == 1
    assert dismiss_dead_letters([dead]) == 0


# --- All dead letters of a script and error -------------------------------------------------------


def of_group(client: Client) -> Any:
    (group,) = client.get(DEAD_LETTERS).context["dead_letters"]
    return group


def confirm(client: Client, address: str) -> Any:
    return client.post(address, CONFIRMED, follow=True)


def settling(action: str, run: Run) -> str:
    return list_of(Run, action, like=run.pk)


@pytest.fixture
def letters(acme: Organisation) -> dict[str, list[Run]]:
    """By error: two of one script and another of it."""
    hook = hook_that(acme, "error(params.get('body'))")
    found: dict[str, list[Run]] = {}
    for body in ("no order 1", "no order 2", "no tea"):
        queue(hook, max_attempts=1, event=event_with(body=body.encode()))
        (run,) = work_all()
        found.setdefault(body[:6], []).append(run)
    return found


def test_dead_letters_are_counted_by_script_and_error(
    as_bob: Client, letters: dict[str, list[Run]]
) -> None:
    response = as_bob.get(DEAD_LETTERS)

    groups = response.context["dead_letters"]
    assert [(group.letters, group.newest) for group in groups] == [
        (2, letters["no ord"][1]),
        (1, letters["no tea"][0]),
    ]
    assert "Replay all" in text_of(response)
    assert "no order 2" in text_of(response)
    listed = as_bob.get(groups[0].listed).context["cl"].result_list
    assert set(listed) == set(letters["no ord"])


def test_all_with_one_error_are_replayed_after_a_question(
    as_bob: Client, bob: User, letters: dict[str, list[Run]]
) -> None:
    address = settling("replay_all", letters["no ord"][-1])

    question = text_of(as_bob.get(address))
    assert "Replay 2 dead letters" in question
    assert "no order 2" in question
    assert not QueueEntry.objects.exists()
    page = confirm(as_bob, address)

    assert "2 replays: 2 to go." in text_of(page)
    waiting = Run.objects.filter(status=RunStatus.QUEUED).order_by("pk")
    assert [run.replay_of for run in waiting] == letters["no ord"]
    assert {run.started_by for run in waiting} == {bob}
    assert list(Run.objects.dead_letters()) == letters["no tea"]
    assert AuthEvent.objects.filter(kind=JobEvent.RUNS_REPLAYED).count() == 1


def test_all_with_one_error_are_dismissed_after_a_question(
    as_bob: Client, letters: dict[str, list[Run]]
) -> None:
    address = settling("dismiss_all", letters["no ord"][-1])

    assert "Dismiss 2 dead letters" in text_of(as_bob.get(address))
    assert Run.objects.dead_letters().count() == 3
    page = confirm(as_bob, address)

    assert "Dismissed 2 dead letters." in text_of(page)
    assert address_of(page) == DEAD_LETTERS
    assert list(Run.objects.dead_letters()) == letters["no tea"]
    assert not QueueEntry.objects.exists()
    event = AuthEvent.objects.get(kind=JobEvent.RUNS_DISMISSED)
    assert event.reason == "2 runs"


def test_dead_letters_without_a_payload_stay(as_bob: Client, letters: dict[str, list[Run]]) -> None:
    first, second = letters["no ord"]
    Run.objects.filter(pk=first.pk).update(payload_removed_at=timezone.now())
    address = settling("replay_all", second)

    assert "1 dead letter stays: the payload was removed." in text_of(as_bob.get(address))
    confirm(as_bob, address)

    assert Run.objects.get(status=RunStatus.QUEUED).replay_of == second
    assert first in Run.objects.dead_letters()


def test_a_later_attempt_has_the_payload_of_the_first(as_bob: Client, acme: Organisation) -> None:
    hook = hook_that(acme, "error('no')")
    queue(hook, max_attempts=2)
    first, dead = work_all()
    address = settling("replay_all", dead)
    Run.objects.filter(pk=first.pk).update(payload_removed_at=timezone.now())
    refused = confirm(as_bob, address)
    Run.objects.filter(pk=first.pk).update(payload_removed_at=None)

    confirm(as_bob, address)

    assert "the payloads of these runs were removed" in text_of(refused)
    assert Run.objects.get(status=RunStatus.QUEUED).replay_of == dead


@pytest.mark.parametrize("action", ["replay_all", "dismiss_all"])
def test_what_arrived_after_the_question_stays(
    as_bob: Client, letters: dict[str, list[Run]], action: str
) -> None:
    seen, arrived = letters["no ord"]

    confirm(as_bob, settling(action, seen))

    assert set(Run.objects.dead_letters()) == {arrived, *letters["no tea"]}


@pytest.mark.parametrize("action", ["replay_all", "dismiss_all"])
def test_settled_dead_letters_are_not_settled_again(
    as_bob: Client, letters: dict[str, list[Run]], action: str
) -> None:
    dismiss_dead_letters(letters["no tea"])

    page = confirm(as_bob, settling(action, letters["no tea"][0]))

    assert "were replayed or dismissed meanwhile" in text_of(page)
    assert not QueueEntry.objects.exists()
    assert Run.objects.dead_letters().count() == 2


@pytest.mark.parametrize("action", ["replay_all", "dismiss_all"])
def test_no_more_than_the_limit_are_settled_at_once(
    as_bob: Client, letters: dict[str, list[Run]], action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["jobs.admin.dead_letters"], "MAX_REPLAYS", 1)

    confirm(as_bob, settling(action, letters["no ord"][-1]))

    assert set(Run.objects.dead_letters()) == {letters["no ord"][0], letters["no tea"][0]}


@pytest.mark.parametrize("action", ["replay_all", "dismiss_all"])
@pytest.mark.parametrize("query", ["", "?like=", "?like=x", "?like={}&q=1", "?like=\0"])
def test_an_address_that_names_no_dead_letter_settles_nothing(
    as_bob: Client, letters: dict[str, list[Run]], action: str, query: str
) -> None:
    address = list_of(Run, action) + query.format(letters["no tea"][0].pk)

    assert as_bob.post(address, CONFIRMED).status_code == 404
    assert Run.objects.dead_letters().count() == 3


@pytest.mark.parametrize("action", ["replay_all", "dismiss_all"])
def test_a_viewer_settles_no_dead_letters(
    acme: Organisation, letters: dict[str, list[Run]], action: str
) -> None:
    viewer = client_of(acme, Role.VIEWER)

    listed = text_of(viewer.get(DEAD_LETTERS))
    response = viewer.post(settling(action, letters["no tea"][0]), CONFIRMED)

    assert "no tea" not in listed
    assert "Replay all" not in listed
    assert response.status_code == 403
    assert "no tea" not in text_of(response)
    assert Run.objects.dead_letters().count() == 3
    assert not QueueEntry.objects.exists()


@pytest.mark.parametrize("action", ["replay_all", "dismiss_all"])
def test_another_organisations_administrator_settles_no_dead_letters(
    charlie: User, globex: Organisation, letters: dict[str, list[Run]], action: str
) -> None:
    own = dead_letter_of(hook_that(globex, "error('no tea')"))
    as_charlie = logged_in(charlie)

    response = as_charlie.post(settling(action, letters["no tea"][0]), CONFIRMED)
    confirm(as_charlie, settling(action, own))

    assert response.status_code == 404
    assert set(Run.objects.dead_letters()) == {*letters["no ord"], *letters["no tea"]}


def test_root_settles_the_dead_letters_of_one_organisation(
    as_root: Client, letters: dict[str, list[Run]], foreign: Hook
) -> None:
    other = dead_letter_of(foreign)

    assert "Globex" in text_of(as_root.get(DEAD_LETTERS))
    confirm(as_root, settling("dismiss_all", other))

    assert other not in Run.objects.dead_letters()
    assert Run.objects.dead_letters().count() == 3


def test_a_narrowed_list_of_dead_letters_keeps_its_title(
    as_bob: Client, letters: dict[str, list[Run]]
) -> None:
    text = text_of(as_bob.get(DEAD_LETTERS, {"dead_letter": "yes", "q": "01890000"}))

    assert re.search(r"<title>\s*Dead letters \|", text)
    assert "No matches" in text
    assert f'href="{DEAD_LETTERS}"' in text


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans so small a table")
def test_dead_letters_are_grouped_by_their_index(
    as_bob: Client, letters: dict[str, list[Run]]
) -> None:
    with CaptureQueriesContext(connection) as captured:
        as_bob.get(DEAD_LETTERS)

    (grouped,) = [each["sql"] for each in captured if "SUBSTR" in each["sql"]]
    assert "run_dead_letter" in plan_of(grouped)
