"""The context of a request in its log events."""

import json
from contextlib import suppress
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from core.logs.context import bind_only, binding, bound
from core.logs.setup import event_formatter


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the path of a view that raises an error with a secret in it."""

    def fail() -> bool:
        raise RuntimeError("mhs_abcdef")

    monkeypatch.setattr("config.operations.readiness.is_draining", fail)
    return "/readyz"


@pytest.fixture(autouse=True)
def _formatted_as_it_happens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.setFormatter(event_formatter(is_json=True))


def only_event(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    [event] = [json.loads(line) for line in caplog.text.splitlines()]
    assert event["level"] == "error"
    return dict(event)


def test_an_uncaught_exception_is_one_event(failing: str, caplog: pytest.LogCaptureFixture) -> None:
    response = Client(raise_request_exception=False).get(f"{failing}?token=of-others")
    event = only_event(caplog)

    assert response.status_code == 500
    assert (event["event"], event["request"]) == ("request_failed", "GET /readyz")
    assert event["request_id"] == response.json()["requestId"]
    assert "RuntimeError: mhs_[redacted]" in event["exception"]
    assert "of-others" not in json.dumps(event)


def test_no_user_is_queried_for_the_log(
    failing: str,
    bob: User,
    caplog: pytest.LogCaptureFixture,
    django_assert_num_queries: Any,
) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(bob, backend="accounts.backends.CanonicalEmailBackend")
    with django_assert_num_queries(0):
        client.get(failing)

    assert "user_id" not in only_event(caplog)


def test_the_user_is_bound_if_the_page_looked_them_up(bob: User) -> None:
    client = Client()
    client.force_login(bob, backend="accounts.backends.CanonicalEmailBackend")
    client.get("/admin/")

    assert bound()["user_id"] == bob.pk


def test_the_context_is_cleared_between_requests(bob: User) -> None:
    client = Client()
    client.force_login(bob, backend="accounts.backends.CanonicalEmailBackend")
    client.get("/admin/")
    response = client.get("/healthz")

    assert bound() == {"request_id": response["X-Request-Id"]}


def test_what_a_block_binds_ends_with_it() -> None:
    bind_only(run="outer", task="t")

    with suppress(ValueError), binding(run="inner", attempt=2):
        assert bound() == {"run": "inner", "attempt": 2, "task": "t"}
        raise ValueError

    assert bound() == {"run": "outer", "task": "t"}
