from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from jobs.models import QueueEntry
from scripts_engine.sandbox import SandboxPool, SandboxUnavailable
from tests.factories import make_hook, make_organisation, make_script
from tests.working_queue import queue


def test_healthz_answers_without_any_other_service(client: Client) -> None:
    response = client.get("/healthz")

    assert (response.status_code, response.json()) == (200, {"status": "ok"})


def test_a_ready_process_has_a_database_and_a_sandbox(client: Client, db: None) -> None:
    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json() == {
        "status": "ok",
        "checks": {"database": "ok", "sandbox": "ok", "queue": "ok"},
    }


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json"])
@pytest.mark.parametrize("method", ["post", "put", "delete", "options"])
def test_other_methods_are_a_problem(path: str, method: str) -> None:
    response = getattr(Client(enforce_csrf_checks=True), method)(path)

    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD"
    assert response.json()["code"] == "method-not-allowed"


def test_without_a_database_it_is_not_ready(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object) -> None:
        raise DatabaseError("gone")

    with monkeypatch.context() as patch:
        patch.setattr("django.db.backends.base.base.BaseDatabaseWrapper.cursor", refuse)
        response = client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["checks"] == {"database": "failed", "sandbox": "ok"}
    assert response.json()["reasons"] == {"database": "failed"}
    assert "gone" not in response.content.decode()


def test_without_a_sandbox_it_is_not_ready(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise SandboxUnavailable("gone")

    monkeypatch.setattr(SandboxPool, "check_syntax", refuse)
    response = client.get("/readyz")

    assert response.status_code == 503
    assert response.json()["checks"] == {"database": "ok", "sandbox": "failed", "queue": "ok"}
    assert response.json()["reasons"] == {"sandbox": "cannot-start"}


@pytest.mark.django_db(transaction=True)
def test_a_queue_that_stands_still_degrades_readiness_without_failing_it(client: Client) -> None:
    hook = make_hook(make_script(make_organisation())).hook
    queue(hook)
    before = client.get("/readyz").json()
    QueueEntry.objects.update(due_at=timezone.now() - timedelta(seconds=70))
    response = client.get("/readyz")

    assert before["status"] == "ok"
    assert response.status_code == 200
    assert response.json() == {
        "status": "degraded",
        "checks": {"database": "ok", "sandbox": "ok", "queue": "failed"},
        "reasons": {"queue": "stalled"},
    }


def test_an_unknown_address_is_a_problem_document(client: Client) -> None:
    response = client.get("/nowhere")

    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "not-found"
