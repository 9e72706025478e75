"""Queueing, cancelling and replaying runs at /admin/graphql, and pausing the queue."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuthEvent, Organisation
from hooks.models import Hook
from jobs.audit_kinds import JobEvent
from jobs.models import PausedQueue, QueueEntry, QueueKey
from jobs.queue.deduplication import KEY_WINDOW
from scripts_engine.models import Run, Script
from tests.factories import (
    admin_graphql,
    field_of,
    make_hook,
    make_script,
)
from tests.jobs.graphql.queue_mutations import ENQUEUE, REPLAY, enqueue, enqueued, failed, state
from tests.working_queue import work_all

CANCEL = "mutation($id: ID!) { cancelRun(id: $id) { id status dueAt } }"
PAUSE = "mutation($script: ID) { pauseQueue(script: $script) }"
RESUME = "mutation($script: ID) { resumeQueue(script: $script) }"
DAYS_30 = 30 * 86_400


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
    assert AuthEvent.objects.filter(kind=JobEvent.RUN_CANCELLED).count() == 1


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
    assert AuthEvent.objects.filter(kind=JobEvent.QUEUE_PAUSED).count() == 1
    assert AuthEvent.objects.filter(kind=JobEvent.QUEUE_RESUMED).count() == 1


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
