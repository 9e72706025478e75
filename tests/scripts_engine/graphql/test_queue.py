"""Queueing, cancelling and replaying runs at /admin/graphql, and pausing the queue."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuthEvent, AuthEventKind, Organisation
from scripts_engine.flows.author import NOBODY
from scripts_engine.flows.queue.keys import KEY_WINDOW
from scripts_engine.flows.run_payloads import remove_payloads
from scripts_engine.flows.scripts import delete_script, update_script
from scripts_engine.graphql.mutations import queue
from scripts_engine.models import Hook, PausedQueue, QueueEntry, QueueKey, Run, Script
from tests.factories import (
    GraphQLAnswer,
    admin_graphql,
    make_hook,
    make_past_draft,
    make_past_run,
    make_script,
)
from tests.working_queue import work_all

ENQUEUE = """mutation($script: ID!, $body: String, $delay: Int, $key: String) {
    enqueueRun(script: $script, body: $body, delaySeconds: $delay, key: $key) {
        id status trigger requestBody attempt dueAt startedAt durationMs responseStatus } }"""
CANCEL = "mutation($id: ID!) { cancelRun(id: $id) { id status dueAt } }"
REPLAY = """mutation($ids: [ID!], $filter: RunFilter) {
    replayRuns(ids: $ids, filter: $filter) }"""
PAUSE = "mutation($script: ID) { pauseQueue(script: $script) }"
RESUME = "mutation($script: ID) { resumeQueue(script: $script) }"
DAYS_30 = 30 * 86_400


@pytest.fixture
def script(acme: Organisation) -> Script:
    return make_script(acme)


@pytest.fixture
def hook(script: Script) -> Hook:
    return make_hook(script).hook


def field_of(answer: GraphQLAnswer) -> Any:
    return answer.errors[0]["extensions"].get("field")


def enqueue(script: Script, token: str, **variables: Any) -> GraphQLAnswer:
    return admin_graphql(ENQUEUE, token, script=str(script.pk), **variables)


def enqueued(script: Script, token: str, **variables: Any) -> Run:
    answer = enqueue(script, token, **variables)
    return Run.objects.get(pk=answer.data["enqueueRun"]["id"])


def failed(hook: Hook, body: bytes = b"payload", **fields: Any) -> Run:
    fields = {"attempt": 1, "is_dead_letter": False, "request_body": body, **fields}
    return make_past_run(hook, timezone.now(), **{"status": "failed", **fields})


def replay(token: str, *runs: Run) -> GraphQLAnswer:
    return admin_graphql(REPLAY, token, ids=[str(run.pk) for run in runs])


def replayed() -> list[Run]:
    return list(Run.objects.filter(trigger="replay").order_by("id"))


def state() -> list[Any]:
    models = (Script, Hook, Run, QueueEntry, QueueKey, PausedQueue, AuthEvent)
    return [list(model.objects.order_by("pk").values()) for model in models]


# --- Queueing -------------------------------------------------------------------------------------


def test_a_run_is_queued(script: Script, acme_token: str) -> None:
    answer = enqueue(script, acme_token, body="héllo")

    run = Run.objects.get()
    shown = answer.data["enqueueRun"]
    assert (shown["id"], shown["status"], shown["trigger"]) == (str(run.pk), "Queued", "queue")
    assert (shown["requestBody"], shown["attempt"], shown["durationMs"]) == ("héllo", 1, 0)
    assert (shown["responseStatus"], shown["dueAt"]) == (202, shown["startedAt"])
    assert (run.started_with is not None, run.started_by) == (True, None)
    entry = QueueEntry.objects.get()
    assert (entry.run_id, entry.script_id, entry.max_attempts) == (run.pk, script.pk, 5)


def test_a_run_without_a_body_has_an_empty_one(script: Script, acme_token: str) -> None:
    for variables in ({}, {"body": None, "delay": None, "key": None}):
        assert enqueue(script, acme_token, **variables).data["enqueueRun"]["requestBody"] == ""


@pytest.mark.parametrize("seconds", [0, 60, DAYS_30])
def test_a_run_is_due_after_its_delay(script: Script, acme_token: str, seconds: int) -> None:
    run = enqueued(script, acme_token, delay=seconds)

    assert QueueEntry.objects.get().due_at == run.started_at + timedelta(seconds=seconds)


def test_a_known_key_finds_the_run(acme: Organisation, script: Script, acme_token: str) -> None:
    other = make_script(acme, name="other")
    first = enqueued(script, acme_token, key="k" * 200, body="1")
    again = enqueue(script, acme_token, key="k" * 200, body="2")
    elsewhere = enqueued(other, acme_token, key="k" * 200)

    assert again.data["enqueueRun"]["id"] == str(first.pk)
    assert again.data["enqueueRun"]["requestBody"] == "1"
    assert elsewhere.pk != first.pk
    assert Run.objects.count() == QueueEntry.objects.count() == 2


def test_a_key_is_forgotten_after_a_day(script: Script, acme_token: str) -> None:
    first = enqueued(script, acme_token, key="k")
    QueueKey.objects.update(expires_at=timezone.now())

    assert enqueued(script, acme_token, key="k").pk != first.pk
    assert QueueKey.objects.get().expires_at > timezone.now() + KEY_WINDOW - timedelta(hours=1)


def test_a_key_of_a_run_that_is_gone_is_not_found(script: Script, acme_token: str) -> None:
    enqueued(script, acme_token, key="k").delete()
    answer = enqueue(script, acme_token, key="k")

    assert answer.code == "NOT_FOUND"
    assert Run.objects.count() == 0


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({"delay": -1}, "delaySeconds"),
        ({"delay": DAYS_30 + 1}, "delaySeconds"),
        ({"key": ""}, "key"),
        ({"key": "k" * 201}, "key"),
    ],
)
def test_what_cannot_be_queued_is_named_by_its_field(
    script: Script, acme_token: str, variables: dict[str, Any], field: str
) -> None:
    before = state()
    answer = enqueue(script, acme_token, **variables)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)
    assert state() == before


def test_text_that_cannot_be_encoded_is_not_queued(script: Script, acme_token: str) -> None:
    query = f'mutation {{ enqueueRun(script: "{script.pk}", body: "\\ud800") {{ id }} }}'
    before = state()
    answer = admin_graphql(query, acme_token)

    assert answer.code in ("BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED")
    assert state() == before


def test_a_full_queue_refuses_for_a_minute(script: Script, acme_token: str, settings: Any) -> None:
    settings.QUEUE_MAX_WAITING = 1
    enqueued(script, acme_token)
    before = state()
    answer = enqueue(script, acme_token, key="k")

    assert answer.code == "RATE_LIMITED"
    assert answer.errors[0]["extensions"]["retryAfter"] == 60
    assert state() == before


def test_a_disabled_script_is_queued_for_later(script: Script, acme_token: str) -> None:
    Script.objects.update(is_enabled=False)

    assert enqueue(script, acme_token).data["enqueueRun"]["status"] == "Queued"


# --- Cancelling -----------------------------------------------------------------------------------


def test_a_queued_run_is_cancelled(script: Script, acme_token: str) -> None:
    run = enqueued(script, acme_token, delay=60)
    answer = admin_graphql(CANCEL, acme_token, id=str(run.pk))

    assert answer.data["cancelRun"] == {"id": str(run.pk), "status": "Cancelled", "dueAt": None}
    assert (QueueEntry.objects.count(), Run.objects.get().status) == (0, "cancelled")
    assert AuthEvent.objects.filter(kind=AuthEventKind.RUN_CANCELLED).count() == 1


@pytest.mark.parametrize("status", ["running", "succeeded", "failed", "cancelled"])
def test_a_run_that_does_not_wait_is_not_cancelled(
    script: Script, acme_token: str, status: str
) -> None:
    run = enqueued(script, acme_token)
    assert Run.objects.update(status=status) == 1
    if status == "running":
        QueueEntry.objects.update(lease_id=uuid.uuid4(), lease_ends_at=timezone.now())
    else:
        QueueEntry.objects.all().delete()
    before = state()
    answer = admin_graphql(CANCEL, acme_token, id=str(run.pk))

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "id")
    assert state() == before


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
    assert AuthEvent.objects.filter(kind=AuthEventKind.RUNS_REPLAYED).count() == 1


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


# --- Pausing --------------------------------------------------------------------------------------


def test_a_script_is_paused_and_resumed(script: Script, acme_token: str) -> None:
    shown = f'{{ script(id: "{script.pk}") {{ queuePausedAt }} }}'
    twice = [admin_graphql(PAUSE, acme_token, script=str(script.pk)) for _ in range(2)]
    paused = admin_graphql(shown, acme_token).data["script"]["queuePausedAt"]
    resumed = [admin_graphql(RESUME, acme_token, script=str(script.pk)) for _ in range(2)]

    assert [answer.data for answer in twice] == [{"pauseQueue": True}] * 2
    assert [answer.data for answer in resumed] == [{"resumeQueue": True}] * 2
    assert paused is not None
    assert admin_graphql(shown, acme_token).data["script"]["queuePausedAt"] is None
    assert PausedQueue.objects.count() == 0
    assert AuthEvent.objects.filter(kind=AuthEventKind.QUEUE_PAUSED).count() == 1
    assert AuthEvent.objects.filter(kind=AuthEventKind.QUEUE_RESUMED).count() == 1


def test_the_organisation_is_paused_and_resumed(
    acme: Organisation, script: Script, acme_token: str
) -> None:
    twice = [admin_graphql(PAUSE, acme_token) for _ in range(2)]
    paused = list(PausedQueue.objects.values_list("organisation", flat=True))
    resumed = admin_graphql(RESUME, acme_token, script=None)

    assert [answer.data for answer in twice] == [{"pauseQueue": True}] * 2
    assert paused == [acme.pk]
    assert resumed.data == {"resumeQueue": True}
    assert PausedQueue.objects.count() == 0
    assert Script.objects.get().queue_paused_at is None


@pytest.mark.parametrize("of_script", [True, False])
def test_runs_of_a_paused_queue_wait(script: Script, acme_token: str, of_script: bool) -> None:
    run = enqueued(script, acme_token)
    which = {"script": str(script.pk)} if of_script else {}
    admin_graphql(PAUSE, acme_token, **which)
    assert work_all() == []
    admin_graphql(RESUME, acme_token, **which)

    assert [ended.pk for ended in work_all()] == [run.pk]


# --- Tenants --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "variables"),
    [
        (ENQUEUE, {"script": "script"}),
        (ENQUEUE, {"script": "nothing"}),
        (ENQUEUE, {"script": "not an id"}),
        (CANCEL, {"id": "queued"}),
        (CANCEL, {"id": "not an id"}),
        (REPLAY, {"ids": ["run"]}),
        (REPLAY, {"ids": ["own", "run"]}),
        (REPLAY, {"ids": ["own", "nothing"]}),
        (REPLAY, {"ids": ["own", "not an id"]}),
        (REPLAY, {"filter": {"script": "script"}}),
        (REPLAY, {"filter": {"hook": "hook"}}),
        (PAUSE, {"script": "script"}),
        (RESUME, {"script": "paused"}),
    ],
)
def test_another_organisations_key_finds_nothing(
    hook: Hook,
    globex: Organisation,
    acme_token: str,
    globex_token: str,
    document: str,
    variables: dict[str, Any],
) -> None:
    paused = make_script(hook.organisation, name="paused")
    admin_graphql(PAUSE, acme_token, script=str(paused.pk))
    ids = {
        "script": hook.script_id,
        "paused": paused.pk,
        "hook": hook.pk,
        "run": failed(hook).pk,
        "queued": enqueued(hook.script, acme_token).pk,
        "own": failed(make_hook(make_script(globex)).hook).pk,
        "nothing": uuid.uuid4(),
    }
    before = state()
    answer = admin_graphql(document, globex_token, **replaced(variables, ids))

    assert answer.code == "NOT_FOUND"
    assert state() == before


def replaced(value: Any, ids: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: replaced(each, ids) for name, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, ids) for each in value]
    return str(ids.get(value, value))


def test_a_filter_and_a_pause_reach_only_the_own_organisation(
    hook: Hook, globex: Organisation, globex_token: str
) -> None:
    failed(hook)
    replays = admin_graphql(REPLAY, globex_token, filter={})
    admin_graphql(PAUSE, globex_token)

    assert replays.data == {"replayRuns": 0}
    assert list(PausedQueue.objects.values_list("organisation", flat=True)) == [globex.pk]
