"""Dead letters in the admin: replayed and dismissed by selection, or all of a script and error."""

import re
import sys
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import AuthEvent, Organisation, Role, User
from core.admin.links import list_of
from hooks.models import Hook
from jobs.audit_kinds import JobEvent
from jobs.models import QueueEntry
from jobs.queue.cancel import cancel_run
from jobs.queue.replay import dismiss_dead_letters, replay_runs
from scripts_engine.models import Run, RunStatus
from tests.admin.pages import CONFIRMED, DEAD_LETTERS, act, address_of, logged_in, text_of
from tests.admin.roles import client_of
from tests.factories import event_with, hook_that, make_hook, make_organisation, make_script
from tests.query_plans import plan_of
from tests.working_queue import dead_letter_of, make_due, queue, work_all, work_queue

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]
QUEUE = list_of(QueueEntry)


@pytest.fixture
def foreign() -> Hook:
    return make_hook(make_script(make_organisation("Globex"), "error('no')")).hook


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


def test_only_a_narrowed_list_of_dead_letters_offers_all_of_them(
    as_bob: Client, letters: dict[str, list[Run]]
) -> None:
    whole = text_of(as_bob.get(DEAD_LETTERS))
    narrowed = text_of(as_bob.get(DEAD_LETTERS, {"dead_letter": "yes", "status__exact": "failed"}))

    assert "Show all" not in whole
    assert f'<a href="{DEAD_LETTERS}">Show all</a>' in narrowed


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL scans so small a table")
@pytest.mark.parametrize(
    ("client", "index"),
    [("as_bob", "run_dead_letter_organisation"), ("as_root", "run_dead_letter")],
)
def test_dead_letters_are_grouped_counted_and_listed_by_their_index(
    request: pytest.FixtureRequest, letters: dict[str, list[Run]], client: str, index: str
) -> None:
    with CaptureQueriesContext(connection) as captured:
        request.getfixturevalue(client).get(DEAD_LETTERS)

    statements = [each["sql"] for each in captured]
    of_letters = [each for each in statements if re.search('WHERE.*"is_dead_letter"', each)]
    assert len(of_letters) == 3
    assert all(f"INDEX {index}" in plan_of(each) for each in of_letters)
