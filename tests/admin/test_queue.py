"""The pages of the queue: what waits, and the story of a run."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import AuthEvent, Organisation, Role
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
from tests.admin.pages import act, run_of, text_of
from tests.admin.roles import client_of
from tests.factories import hook_that, make_hook, make_organisation, make_script
from tests.query_plans import plan_of, scans_an_organisation
from tests.working_queue import dead_letter_of, make_due, queue, work_all, work_queue

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]
QUEUE = list_of(QueueEntry)


@pytest.fixture
def foreign() -> Hook:
    return make_hook(make_script(make_organisation("Globex"), "error('no')")).hook


def steer_by(client: Client, **fields: Any) -> Any:
    return client.post("/admin/jobs/queueentry/steer/", fields)


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


def test_the_page_of_an_entry_that_has_left_the_queue_leads_to_its_run(
    as_bob: Client, acme: Organisation, foreign: Hook
) -> None:
    run, theirs = queue(hook_that(acme, "return 1")), queue(foreign)
    address = page_of(QueueEntry(pk=run.pk))
    assert as_bob.get(address).status_code == 200
    work_queue()

    response = as_bob.get(address)

    assert (response.status_code, response["Location"]) == (302, page_of(run))
    assert as_bob.get(page_of(QueueEntry(pk=theirs.pk))).status_code == 404
    assert as_bob.get(page_of(QueueEntry(pk=uuid4()))).status_code == 404


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
