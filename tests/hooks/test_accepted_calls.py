"""Calls that are answered as soon as their run is queued."""

import json
from typing import Any

import pytest
from django.conf import LazySettings

from accounts.models import Organisation
from hooks.flows.hooks import IssuedHook
from hooks.models import IdempotencyKey
from jobs.models import QueueEntry
from jobs.queue import queue_limit
from scripts_engine.models import Run, RunStatus
from tests.client import Client
from tests.factories import make_hook, make_organisation, make_script, set_rules
from tests.hooks import github
from tests.hooks.calls import PROTECTION, path_of
from tests.hooks.test_limits_of_calls import assert_refused
from tests.working_queue import make_due, work_all, work_queue

SOURCE = 'return {params.get("body"), params.get("trigger"), params.get("attempt")}'

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_counted() -> None:
    queue_limit._known.clear()


@pytest.fixture
def issued(acme: Organisation) -> IssuedHook:
    issued = make_hook(make_script(acme, SOURCE))
    set_rules(issued.hook, reply_mode="accepted")
    return issued


def post(issued: IssuedHook, body: bytes = b"order 1", **headers: str) -> Any:
    path = path_of(issued)
    return Client().post(path, body, content_type="text/plain", headers=headers)


def test_an_accepted_call_names_its_queued_run(issued: IssuedHook) -> None:
    response = post(issued)

    run = Run.objects.get()
    assert response.status_code == 202
    assert response.json() == {"runId": str(run.pk), "status": "Queued"}
    assert response["Content-Type"] == "application/json"
    assert response["Moonhook-Run-Id"] == str(run.pk)
    assert response.headers.items() >= PROTECTION.items()
    assert "Preference-Applied" not in response.headers
    assert (run.status, run.response_status) == (RunStatus.QUEUED, 202)
    (ended,) = work_queue()
    assert ended.pk == run.pk
    assert json.loads(bytes(ended.response_body)) == ["order 1", "hook", "1"]


@pytest.mark.parametrize(("status", "body"), [(200, True), (204, False), (205, False)])
def test_the_status_of_acceptance_may_be_set(issued: IssuedHook, status: int, body: bool) -> None:
    set_rules(issued.hook, accepted_status=status)

    response = post(issued)

    assert (response.status_code, bool(response.content)) == (status, body)
    assert Run.objects.get().response_status == status


def test_a_sender_with_a_preset_gets_its_status_and_no_body(acme: Organisation) -> None:
    issued = github.make_github(acme)
    set_rules(issued.hook, reply_mode="accepted")

    response = github.call(issued)

    assert (response.status_code, response.content) == (202, b"")
    run = Run.objects.get()
    assert response["Moonhook-Run-Id"] == str(run.pk)
    assert (run.sender, run.verified) == ("github", "signed")
    (ended,) = work_queue()
    assert json.loads(bytes(ended.response_body))[:2] == ["github", "signed"]


def test_a_refused_signature_queues_nothing(acme: Organisation) -> None:
    issued = github.make_github(acme)
    set_rules(issued.hook, reply_mode="accepted")

    github.assert_refused(github.call(issued, headers={"X-Hub-Signature-256": "sha256=00"}))

    assert not QueueEntry.objects.exists()


@pytest.mark.parametrize(
    "prefer",
    [
        "respond-async",
        "Respond-Async",
        "wait=10, respond-async",
        'respond-async; x="a, b" , wait=5',
        "respond-async, ",
        'respond-async=""',
    ],
)
def test_one_call_may_ask_for_acceptance(issued: IssuedHook, prefer: str) -> None:
    set_rules(issued.hook, reply_mode="")

    response = post(issued, Prefer=prefer)

    assert response.status_code == 202
    assert response["Preference-Applied"] == "respond-async"
    assert Run.objects.get().status == RunStatus.QUEUED


@pytest.mark.parametrize(
    "prefer",
    [
        "",
        "respond-sync",
        "respond-async=yes",
        "respond-asynchronously",
        'x="respond-async"',
        "wait=10; respond-async",
        "respond-async, =5",
        'respond-async, x="open',
        "respond-async (really)",
        "respond-async" + " " * 1000,
    ],
)
def test_other_preferences_are_ignored(issued: IssuedHook, prefer: str) -> None:
    set_rules(issued.hook, reply_mode="")

    response = post(issued, Prefer=prefer)

    assert response.status_code == 200
    assert "Preference-Applied" not in response.headers
    assert Run.objects.get().status == RunStatus.SUCCEEDED


def test_a_preference_is_ignored_for_a_sender_with_a_preset(acme: Organisation) -> None:
    issued = github.make_github(acme)

    response = github.call(issued, headers={**github.signed(), "Prefer": "respond-async"})

    assert (response.status_code, Run.objects.get().status) == (200, RunStatus.SUCCEEDED)


def test_a_full_queue_refuses(issued: IssuedHook, settings: LazySettings) -> None:
    settings.QUEUE_MAX_WAITING = 2
    assert [post(issued).status_code for _ in range(2)] == [202, 202]

    assert_refused(post(issued), 503, "queue-full", range(60, 61))

    assert Run.objects.count() == QueueEntry.objects.count() == 2
    work_all()
    assert post(issued).status_code == 202


def test_waiting_payloads_may_not_use_more_than_the_quota(
    issued: IssuedHook, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_limit, "_TRUST_SECONDS", 0)
    settings.RUN_BYTES_PER_ORGANISATION = 10_000
    assert [post(issued, b"x" * 6000).status_code for _ in range(2)] == [202, 202]

    assert_refused(post(issued, b"x"), 503, "queue-full", range(60, 61))

    assert Run.objects.count() == QueueEntry.objects.count() == 2
    other = make_hook(make_script(make_organisation("Globex"), SOURCE))
    set_rules(other.hook, reply_mode="accepted")
    assert post(other).status_code == 202
    work_all()
    assert post(issued).status_code == 202


def test_the_quota_is_measured_once_a_second(issued: IssuedHook, settings: LazySettings) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 10_000
    post(issued, b"x" * 12_000)
    assert post(issued).status_code == 202

    queue_limit._known.clear()
    assert_refused(post(issued), 503, "queue-full", range(60, 61))
    work_all()
    assert_refused(post(issued), 503, "queue-full", range(60, 61))


def test_without_a_quota_payloads_of_any_size_wait(
    issued: IssuedHook, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_limit, "_TRUST_SECONDS", 0)
    settings.RUN_BYTES_PER_ORGANISATION = 0

    assert [post(issued, b"x" * 6000).status_code for _ in range(3)] == [202, 202, 202]


def test_a_refused_delivery_is_free_again(issued: IssuedHook, settings: LazySettings) -> None:
    set_rules(issued.hook, idempotency="body-hash")
    settings.QUEUE_MAX_WAITING = 1
    post(issued, b"first")
    assert post(issued, b"second").status_code == 503
    work_all()

    assert post(issued, b"second").status_code == 202


@pytest.mark.parametrize("ending", ["queued", "succeeded", "failed", "deleted"])
def test_a_duplicate_of_an_accepted_call_is_accepted_at_once(
    acme: Organisation, ending: str
) -> None:
    issued = make_hook(make_script(acme, "error('no')" if ending == "failed" else SOURCE))
    set_rules(issued.hook, reply_mode="accepted", idempotency="body-hash", max_attempts=1)
    first = post(issued)
    if ending != "queued":
        work_all()
    if ending == "deleted":
        IdempotencyKey.objects.update(ended_with=202)
        Run.objects.all().delete()
    runs = Run.objects.count()

    again = post(issued)

    assert (again.status_code, again.content) == (202, first.content)
    assert again["Moonhook-Duplicate-Of"] == first["Moonhook-Run-Id"]
    assert again["Moonhook-Run-Id"] == first["Moonhook-Run-Id"]
    assert Run.objects.count() == runs


def test_a_duplicate_of_a_call_that_waited_gets_its_reply(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, "return 'the reply'"))
    set_rules(issued.hook, idempotency="body-hash")
    first = post(issued)
    set_rules(issued.hook, reply_mode="accepted")

    again = post(issued)

    assert (again.status_code, again.content) == (200, b"the reply")
    assert again["Moonhook-Duplicate-Of"] == first["Moonhook-Run-Id"]
    assert Run.objects.count() == 1


def test_the_limit_of_calls_counts_accepted_ones(issued: IssuedHook) -> None:
    set_rules(issued.hook, calls_per_minute=1, burst=1)
    assert post(issued).status_code == 202

    assert_refused(post(issued), 429, "rate-limited", range(1, 61))

    assert Run.objects.count() == 1


def test_the_hooks_attempts_are_those_of_its_runs(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, "error('no')"))
    set_rules(issued.hook, reply_mode="accepted", max_attempts=2)
    post(issued)

    assert [run.attempt for run in work_all()] == [1, 2]


def test_a_synchronous_call_that_fails_is_not_queued(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, "error('no')"))

    assert post(issued).status_code == 500
    make_due()

    assert work_queue() == []
    assert not QueueEntry.objects.exists()
