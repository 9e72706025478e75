"""GET /session passes Django's handler by, and answers as if it did not."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.test import RequestFactory, override_settings
from django.utils import timezone

from accounts.flows.api_keys import IssuedApiKey
from accounts.models import ApiKey
from core.database.unavailable import DatabaseUnavailable
from core.logs.context import bound
from core.logs.setup import event_formatter
from sessions_api.authentication import cookie_name
from sessions_api.models import Session
from sessions_api.wsgi import LookUps
from tests.client import Client
from tests.factories import bearer

Sent = tuple[str, list[tuple[str, str]], str]


def look_up(token: str, **environ: Any) -> dict[str, Any]:
    authorization = f"Bearer {token}"
    made: dict[str, Any] = (
        RequestFactory().get("/session", HTTP_AUTHORIZATION=authorization).environ
    )
    return {name: value for name, value in {**made, **environ}.items() if value is not None}


def sent_by(application: Callable[..., Any], environ: dict[str, Any]) -> Sent:
    """The raw response, without the request's id."""
    head: list[Any] = []
    # Django's test client connects it after each request; config.apps disconnects it.
    request_started.disconnect(close_old_connections)
    content = b"".join(application(environ, lambda *given: head.extend(given))).decode()
    [request_id] = [value for name, value in head[1] if name == "X-Request-Id"]
    assert re.fullmatch("[0-9a-f]{32}", request_id)
    headers = [(name, value) for name, value in head[1] if name != "X-Request-Id"]
    return head[0], headers, content.replace(request_id, "")


def assert_same(status: int, environ: dict[str, Any]) -> None:
    assert LookUps.take(environ)
    sent = sent_by(LookUps(), environ)

    assert sent == sent_by(WSGIHandler(), environ)
    assert sent[0].startswith(str(status))


@pytest.mark.parametrize(
    ("status", "changes"),
    [
        (200, {}),
        (200, {"QUERY_STRING": "a=b"}),
        (200, {"HTTP_ACCEPT": "text/html"}),
        (200, {"HTTP_X_FORWARDED_PROTO": "https"}),
        (200, {"SCRIPT_NAME": "/under"}),
        (401, {"HTTP_AUTHORIZATION": None}),
        (401, {"HTTP_AUTHORIZATION": "Bearer mhx_wrong"}),
        (401, {"HTTP_AUTHORIZATION": "Basic bWh4Og=="}),
        (401, {"HTTP_AUTHORIZATION": "Bearer \xe9"}),
        (401, {"HTTP_AUTHORIZATION": None, "HTTP_COOKIE": "moonhook_session=; =\xff;"}),
    ],
)
def test_a_look_up_is_answered_as_by_django(
    acme_token: str, status: int, changes: dict[str, str | None]
) -> None:
    proxy = ("HTTP_X_FORWARDED_PROTO", "https")
    with override_settings(SECURE_HSTS_SECONDS=31_536_000, SECURE_PROXY_SSL_HEADER=proxy):
        assert_same(status, look_up(acme_token, **changes))


def test_a_look_up_by_cookie_is_answered_as_by_django(acme_token: str) -> None:
    cookie = f"{cookie_name()}={acme_token}"

    assert_same(200, look_up("", HTTP_AUTHORIZATION=None, HTTP_COOKIE=cookie))


def revoke(key: ApiKey) -> None:
    ApiKey.objects.update(revoked_at=timezone.now())


def allow_another_network(key: ApiKey) -> None:
    ApiKey.objects.update(allowed_networks=["192.0.2.0/24"])


def deactivate_the_organisation(key: ApiKey) -> None:
    key.organisation.is_active = False
    key.organisation.save()


def let_it_expire(key: ApiKey) -> None:
    Session.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize(
    "end", [revoke, allow_another_network, deactivate_the_organisation, let_it_expire]
)
def test_an_ended_session_is_refused_as_by_django(
    acme_key: IssuedApiKey, acme_token: str, end: Callable[[ApiKey], None]
) -> None:
    assert_same(200, look_up(acme_token))
    end(acme_key.api_key)

    assert_same(401, look_up(acme_token))


@pytest.mark.parametrize(
    ("status", "error"), [(503, DatabaseUnavailable("gone")), (500, RuntimeError("a bug"))]
)
def test_a_failing_look_up_is_answered_as_by_django(
    acme_token: str, monkeypatch: pytest.MonkeyPatch, status: int, error: Exception
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("sessions_api.authentication.use_session", fail)

    assert_same(status, look_up(acme_token))


def test_a_bug_is_one_event_with_the_request_s_id(
    acme_token: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("sessions_api.authentication.use_session", fail)
    caplog.handler.setFormatter(event_formatter(is_json=True))
    response = Client().get("/session?token=of-others", headers=bearer(acme_token))

    [event] = [json.loads(line) for line in caplog.text.splitlines()]
    assert (event["level"], event["request_id"]) == ("error", response["X-Request-Id"])
    assert "RuntimeError: a bug" in event["exception"]
    assert acme_token not in caplog.text
    assert "of-others" not in caplog.text


@pytest.mark.parametrize(
    "changes",
    [
        *({"REQUEST_METHOD": method} for method in ("HEAD", "POST", "DELETE", "PUT", "get")),
        *({"PATH_INFO": path} for path in ("/session/", "//session", "/SESSION", "/sessions", "/")),
        *({"HTTP_HOST": host} for host in ("evil.example", "", "a b", "[::1")),
        {"SERVER_NAME": "evil.example"},
    ],
)
def test_all_else_is_left_to_django(acme_token: str, changes: dict[str, str]) -> None:
    environ = look_up(acme_token, HTTP_HOST=None, SERVER_NAME="127.0.0.1")
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        assert LookUps.take(environ)
        assert not LookUps.take(environ | changes)


def test_a_look_up_binds_its_session_to_the_log(acme_key: IssuedApiKey, acme_token: str) -> None:
    shown = Client().get("/session", headers=bearer(acme_token))
    of_call = bound()
    refused = Client().get("/session")

    assert of_call == {
        "request_id": shown["X-Request-Id"],
        "session": Session.objects.get().pk,
        "organisation": acme_key.api_key.organisation_id,
    }
    assert bound() == {"request_id": refused["X-Request-Id"]}


def test_the_end_of_a_look_up_is_signalled_when_the_body_is_sent(db: None) -> None:
    ended: list[object] = []

    def note(sender: object, **_: object) -> None:
        ended.append(sender)

    body: Any = LookUps()(look_up(""), lambda status, headers: None)
    request_finished.connect(note)
    try:
        before = list(ended)
        body.close()
    finally:
        request_finished.disconnect(note)

    assert (before, ended) == ([], [LookUps])
