"""Hooks, GraphQL and the admin report a script that did not run with the same text."""

import logging
from typing import Any

import pytest

from scripts_engine.models import Run, Script
from scripts_engine.runs.problems import why_not_run
from scripts_engine.sandbox import SandboxBusy, SandboxPool, SandboxUnavailable
from tests.client import Client
from tests.factories import admin_graphql, make_hook

RUN_SCRIPT = "mutation($id: ID!) { runScript(script: $id) { id } }"

pytestmark = pytest.mark.django_db


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the sandbox raise an error in place of every run."""

    def start(error: Exception) -> None:
        def run(*arguments: Any) -> None:
            raise error

        monkeypatch.setattr(SandboxPool, "run", run)

    return start


@pytest.mark.parametrize(
    ("error", "code", "retry_after"),
    [(SandboxBusy(retry_after=3), "busy", "3"), (SandboxUnavailable("gone"), "unavailable", "5")],
)
def test_a_hook_answers_503_with_the_reason(
    script: Script, refuse: Any, error: Exception, code: str, retry_after: str
) -> None:
    issued = make_hook(script)
    url = f"/hook/{script.organisation_id}/{script.pk}/{issued.call_token}"
    assert Client().post(url).status_code == 200
    refuse(error)

    response = Client().post(url)

    problem = response.json()
    assert (response.status_code, problem["code"]) == (503, code)
    assert problem["detail"] == why_not_run(error).text
    assert response["Retry-After"] == retry_after
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("error", "code", "retry_after"),
    [
        (SandboxBusy(retry_after=3), "RATE_LIMITED", 3),
        (SandboxUnavailable("gone"), "UNAVAILABLE", 5),
    ],
)
def test_graphql_answers_with_the_reason(
    script: Script, refuse: Any, acme_token: str, error: Exception, code: str, retry_after: int
) -> None:
    refuse(error)

    (problem,) = admin_graphql(RUN_SCRIPT, acme_token, id=str(script.pk)).errors

    assert problem["message"] == why_not_run(error).text
    assert problem["extensions"] == {"code": code, "retryAfter": retry_after}
    assert not Run.objects.exists()


def test_graphql_logs_why_no_sandbox_is_available(
    script: Script, refuse: Any, acme_token: str, caplog: pytest.LogCaptureFixture
) -> None:
    refuse(SandboxUnavailable("a new sandbox process did not get ready"))

    with caplog.at_level(logging.ERROR):
        admin_graphql(RUN_SCRIPT, acme_token, id=str(script.pk))

    assert "did not get ready" in caplog.text
