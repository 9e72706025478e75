"""Replays of runs over GraphQL."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuthEvent, Organisation
from hooks.models import Hook
from jobs.audit_kinds import JobEvent
from jobs.graphql import queue
from jobs.models import QueueEntry
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.models import Run
from scripts_engine.runs.quota import remove_payloads
from scripts_engine.runs.spec import NOBODY
from tests.factories import (
    GraphQLAnswer,
    admin_graphql,
    field_of,
    make_hook,
    make_past_draft,
    make_past_run,
    make_script,
)
from tests.jobs.graphql.queue_mutations import REPLAY, enqueued, failed, state
from tests.working_queue import work_all


def replay(token: str, *runs: Run) -> GraphQLAnswer:
    return admin_graphql(REPLAY, token, ids=[str(run.pk) for run in runs])


def replayed() -> list[Run]:
    return list(Run.objects.filter(trigger="replay").order_by("id"))


# --- Replaying ------------------------------------------------------------------------------------


def test_runs_are_replayed_by_id(hook: Hook, acme_token: str) -> None:
    earlier = timezone.now() - timedelta(seconds=1)
    dead = make_past_run(
        hook, earlier, "failed", attempt=1, request_body=b"first", is_dead_letter=True
    )
    done = failed(hook, b"second", status="succeeded")
    failed(hook, b"third")
    answer = replay(acme_token, done, dead, done)

    assert answer.data == {"replayRuns": 2}
    assert [bytes(run.request_body) for run in replayed()] == [b"first", b"second"]
    assert [run.replay_of_id for run in replayed()] == [dead.pk, done.pk]
    assert {run.status for run in replayed()} == {"queued"}
    assert QueueEntry.objects.count() == 2
    dead.refresh_from_db()
    assert dead.is_dead_letter is False
    assert AuthEvent.objects.filter(kind=JobEvent.RUNS_REPLAYED).count() == 1


def test_the_replay_of_a_first_attempt_settles_the_dead_letter(hook: Hook, acme_token: str) -> None:
    first = failed(hook)
    last = failed(hook, b"", attempt=2, first_run=first, is_dead_letter=True)

    assert replay(acme_token, first).data == {"replayRuns": 1}

    last.refresh_from_db()
    assert last.is_dead_letter is False


def test_a_later_attempt_is_replayed_with_the_payload_of_the_first(
    hook: Hook, acme_token: str
) -> None:
    first = failed(hook)
    later = failed(hook, b"", attempt=2, first_run=first, is_dead_letter=True)

    assert replay(acme_token, later).data == {"replayRuns": 1}
    assert [bytes(run.request_body) for run in replayed()] == [b"payload"]


def test_runs_are_replayed_by_a_filter(acme: Organisation, hook: Hook, acme_token: str) -> None:
    dead = failed(hook, is_dead_letter=True)
    failed(hook)
    failed(hook, status="succeeded")
    failed(hook, status="queued", is_dead_letter=True)
    failed(make_hook(make_script(acme, name="other")).hook, is_dead_letter=True)
    selected = {"script": str(hook.script_id), "deadLetter": True, "status": None}
    answer = admin_graphql(REPLAY, acme_token, filter=selected)

    assert answer.data == {"replayRuns": 1}
    assert [run.replay_of_id for run in replayed()] == [dead.pk]


@pytest.mark.parametrize(
    ("selected", "number"),
    [
        ({}, 2),
        ({"status": "TimedOut"}, 1),
        ({"status": "Queued"}, 0),
        ({"hook": "hook"}, 2),
        ({"since": "2100-01-01T00:00:00Z"}, 0),
        ({"until": "2000-01-01T00:00:00Z"}, 0),
        ({"deadLetter": False}, 2),
    ],
    ids=str,
)
def test_only_runs_that_match_and_have_ended_are_replayed(
    hook: Hook, acme_token: str, selected: dict[str, Any], number: int
) -> None:
    failed(hook)
    failed(hook, status="timed-out")
    failed(hook, status="queued")
    failed(hook, status="running")
    make_past_draft(hook, timezone.now())
    given = {name: str(hook.pk) if value == "hook" else value for name, value in selected.items()}
    answer = admin_graphql(REPLAY, acme_token, filter=given)

    assert answer.data == {"replayRuns": number}
    assert len(replayed()) == number


def test_a_filter_leaves_out_attempts_that_another_followed(
    acme: Organisation, hook: Hook, acme_token: str
) -> None:
    followed = failed(hook, is_dead_letter=None)
    last = failed(hook, attempt=2, first_run_id=followed.pk, is_dead_letter=True)
    answer = admin_graphql(REPLAY, acme_token, filter={"status": "Failed"})

    assert answer.data == {"replayRuns": 1}
    assert [run.replay_of_id for run in replayed()] == [last.pk]


def test_a_filter_leaves_out_runs_of_deleted_scripts(
    acme: Organisation, hook: Hook, acme_token: str
) -> None:
    failed(hook)
    other = make_hook(make_script(acme, name="other")).hook
    failed(other)
    delete_script(other.script)

    assert admin_graphql(REPLAY, acme_token, filter={}).data == {"replayRuns": 1}
    assert {run.script_id for run in replayed()} == {hook.script_id}


def test_no_ids_replay_nothing(hook: Hook, acme_token: str) -> None:
    failed(hook)

    assert admin_graphql(REPLAY, acme_token, ids=[]).data == {"replayRuns": 0}
    assert replayed() == []


@pytest.mark.parametrize("variables", [{}, {"ids": [], "filter": {}}])
def test_replays_need_either_ids_or_a_filter(
    hook: Hook, acme_token: str, variables: dict[str, Any]
) -> None:
    failed(hook)
    before = state()
    answer = admin_graphql(REPLAY, acme_token, **variables)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "ids")
    assert state() == before


@pytest.mark.parametrize("by", ["ids", "filter"])
def test_too_many_runs_are_not_replayed(
    hook: Hook, acme_token: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [failed(hook) for _ in range(3)]
    given = {"ids": [str(run.pk) for run in runs], "filter": {}}[by]
    before = state()
    monkeypatch.setattr(queue, "MAX_REPLAYS", 2)
    refused = admin_graphql(REPLAY, acme_token, **{by: given})
    after = state()
    monkeypatch.setattr(queue, "MAX_REPLAYS", 3)
    allowed = admin_graphql(REPLAY, acme_token, **{by: given})

    assert (refused.code, field_of(refused)) == ("BAD_USER_INPUT", by)
    assert after == before
    assert allowed.data == {"replayRuns": 3}


@pytest.mark.parametrize("by", ["ids", "filter"])
def test_payloads_are_not_read_all_at_once(
    hook: Hook, acme_token: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread: list[set[str]] = []
    replay_runs = queue.replay_runs

    def replay_and_note(runs: list[Run], **options: Any) -> Any:
        unread.extend(run.get_deferred_fields() for run in runs)
        return replay_runs(runs, **options)

    monkeypatch.setattr(queue, "replay_runs", replay_and_note)
    run = failed(hook)

    answer = admin_graphql(REPLAY, acme_token, **{by: {"ids": [str(run.pk)], "filter": {}}[by]})

    assert answer.data == {"replayRuns": 1}
    (deferred,) = unread
    assert {"request_body", "request_headers", "response_body", "logs"} <= deferred


def test_a_run_that_is_deleted_meanwhile_stops_all(
    hook: Hook, acme_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, gone = failed(hook, is_dead_letter=True), failed(hook)
    replay_runs = queue.replay_runs

    def replay_later(runs: list[Run], **options: Any) -> Any:
        Run.objects.filter(pk=gone.pk).delete()
        return replay_runs(runs, **options)

    monkeypatch.setattr(queue, "replay_runs", replay_later)

    answer = admin_graphql(REPLAY, acme_token, ids=[str(good.pk), str(gone.pk)])

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "ids")
    assert answer.errors[0]["message"] == f"Run {gone.pk} is deleted."
    assert list(Run.objects.dead_letters()) == [good]
    assert not QueueEntry.objects.exists()


def test_a_thousand_runs_are_the_most() -> None:
    assert queue.MAX_REPLAYS == 1000


@pytest.mark.parametrize("obstacle", ["queued", "running", "draft", "removed", "deleted"])
def test_one_run_that_cannot_be_replayed_stops_all(
    hook: Hook, acme_token: str, obstacle: str
) -> None:
    good = failed(hook, is_dead_letter=True)
    bad = failed(hook)
    if obstacle in ("queued", "running"):
        Run.objects.filter(pk=bad.pk).update(status=obstacle)
    elif obstacle == "draft":
        bad = make_past_draft(hook, timezone.now())
    elif obstacle == "removed":
        remove_payloads([bad.pk])
    else:
        other = make_hook(make_script(hook.organisation, name="other")).hook
        bad = failed(other)
        delete_script(other.script)
    before = state()
    answer = replay(acme_token, good, bad)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "ids")
    assert str(bad.pk) in answer.errors[0]["message"]
    assert state() == before


def test_a_removed_payload_stops_a_replay_by_filter(hook: Hook, acme_token: str) -> None:
    failed(hook)
    remove_payloads([failed(hook).pk])
    before = state()
    answer = admin_graphql(REPLAY, acme_token, filter={})

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "filter")
    assert state() == before


def test_a_full_queue_replays_nothing(hook: Hook, acme_token: str, settings: Any) -> None:
    runs = [failed(hook, is_dead_letter=True) for _ in range(2)]
    settings.QUEUE_MAX_WAITING = 1
    before = state()
    answer = replay(acme_token, *runs)

    assert answer.code == "RATE_LIMITED"
    assert answer.errors[0]["extensions"]["retryAfter"] == 60
    assert state() == before


def test_a_dead_letter_is_replayed_after_its_script_is_mended(
    acme: Organisation, acme_token: str
) -> None:
    script = make_script(acme, "error('broken')")
    first = enqueued(script, acme_token, body="order 7")
    work_all()
    query = """query($id: ID!) { runs(firstRun: $id) { nodes {
        attempt deadLetter status requestBody firstRun { id } } } }"""
    attempts = admin_graphql(query, acme_token, id=str(first.pk)).data["runs"]["nodes"]
    update_script(script, source='return params.get("body")', author=NOBODY)
    replays = admin_graphql(REPLAY, acme_token, filter={"deadLetter": True})
    [ended] = work_all()
    again = admin_graphql(REPLAY, acme_token, filter={"deadLetter": True})

    assert [each["attempt"] for each in attempts] == [5, 4, 3, 2, 1]
    assert [each["deadLetter"] for each in attempts] == [True, False, False, False, False]
    assert {each["requestBody"] for each in attempts} == {"order 7"}
    assert {each["firstRun"]["id"] for each in attempts} == {str(first.pk)}
    assert (replays.data, again.data) == ({"replayRuns": 1}, {"replayRuns": 0})
    assert (ended.status, bytes(ended.response_body)) == ("succeeded", b"order 7")
