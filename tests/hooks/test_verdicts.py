"""Callers that wait for a script which returns Retry or Fail."""

from typing import Any

import pytest

from accounts.models import Organisation
from hooks.models import Idempotency
from scripts_engine.models import Run, RunStatus
from tests.client import Client
from tests.factories import make_hook, make_script
from tests.hooks.calls import PROTECTION, path_of


def answer_of(organisation: Organisation, source: str) -> Any:
    issued = make_hook(make_script(organisation, source))
    return Client().post(path_of(issued), b"", content_type="text/plain")


@pytest.mark.parametrize(
    ("source", "retry_after"),
    [
        ('Retry{after = 90, reason = "tenant secret"}', "90"),
        ('Retry{after = 0.2, reason = "tenant secret"}', "1"),
        ('Retry{after = 59.001, reason = "tenant secret"}', "60"),
        ('Retry{after = 0, reason = "tenant secret"}', "0"),
        ('Retry{after = 86400, reason = "tenant secret"}', "86400"),
        ('Retry{reason = "tenant secret"}', "10"),
    ],
)
def test_a_caller_is_asked_to_try_again(acme: Organisation, source: str, retry_after: str) -> None:
    response = answer_of(acme, f"return {source}")

    assert response.status_code == 503
    assert response["Retry-After"] == retry_after
    problem = response.json()
    assert (problem["code"], problem["status"]) == ("script-failed", 503)
    assert response.headers.items() >= PROTECTION.items()
    assert "tenant secret" not in response.content.decode()
    run = Run.objects.get()
    assert problem["runId"] == response["Moonhook-Run-Id"] == str(run.pk)
    assert (run.status, run.response_status) == (RunStatus.FAILED, 503)
    assert (run.error_message, bytes(run.response_body)) == ("tenant secret", b"")


def test_a_caller_is_not_told_why_a_script_gave_up(acme: Organisation) -> None:
    response = answer_of(acme, 'return Fail{reason = "tenant secret"}')

    assert response.status_code == 500
    assert response.json()["code"] == "script-failed"
    assert "Retry-After" not in response.headers
    assert "tenant secret" not in response.content.decode()
    run = Run.objects.get()
    assert (run.status, run.response_status) == (RunStatus.FAILED, 500)
    assert run.error_message == "tenant secret"


@pytest.mark.parametrize(
    "source", ["Retry{after = -1}", 'Retry{after = "x"}', "Retry{after = 86401}"]
)
def test_an_invalid_verdict_is_a_failed_script(acme: Organisation, source: str) -> None:
    response = answer_of(acme, f"return {source}")

    assert response.status_code == 500
    assert response.json()["code"] == "script-failed"
    assert "Retry-After" not in response.headers
    assert "from 0 to 86400" in Run.objects.get().error_message


def test_a_delivery_that_is_to_be_tried_again_runs_again(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, 'return Retry{after = 1, reason = "closed"}'))
    issued.hook.idempotency = Idempotency.BODY_HASH
    issued.hook.save()
    answers = [Client().post(path_of(issued), b"same", content_type="text/plain") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [503, 503]
    assert "Moonhook-Duplicate-Of" not in answers[1].headers
    assert Run.objects.count() == 2
