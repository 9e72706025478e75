"""What every response of a hook ensures, whatever its view answers."""

import json
import re
from typing import Any

import pytest
from django.core.servers.basehttp import get_internal_wsgi_application
from django.core.signals import request_finished
from django.test import RequestFactory, override_settings

from accounts.models import Organisation
from core.logs.context import bound
from core.logs.setup import event_formatter
from hooks.edge.wsgi import HooksApplication
from hooks.flows.hooks import IssuedHook
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import make_hook, make_script
from tests.hooks.calls import path_of

PROTECTION = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@pytest.fixture
def echo(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme))


def call(issued: IssuedHook, **options: Any) -> Any:
    return Client().post(path_of(issued), b"hello", content_type="text/plain", **options)


def test_a_reply_is_protected(echo: IssuedHook) -> None:
    assert call(echo).headers.items() >= PROTECTION.items()


@pytest.mark.parametrize("path", ["/hook/", "/hook/a/b/c", "/hook/secure/a/b"])
@pytest.mark.parametrize("method", ["get", "head", "post", "put"])
def test_a_refusal_is_protected(db: None, path: str, method: str) -> None:
    response = getattr(Client(), method)(path)

    assert response.status_code in {401, 404, 405}
    assert response.headers.items() >= PROTECTION.items()
    assert int(response["Content-Length"]) > 0


def test_the_request_id_is_ours(echo: IssuedHook) -> None:
    sent = "0" * 32
    response = Client().put(path_of(echo), headers={"X-Request-Id": sent})

    assert re.fullmatch("[0-9a-f]{32}", response["X-Request-Id"])
    assert response.json()["requestId"] == response["X-Request-Id"] != sent


def test_a_script_may_replace_the_headers_about_caches_and_frames(acme: Organisation) -> None:
    source = """return Reply{headers = {
        ["x-frame-options"] = "SAMEORIGIN", ["CACHE-CONTROL"] = "max-age=60"}}"""
    response = call(make_hook(make_script(acme, source)))

    assert response["X-Frame-Options"] == "SAMEORIGIN"
    assert response["Cache-Control"] == "max-age=60"


@pytest.mark.parametrize(("status", "length"), [(200, "0"), (204, None), (205, "0"), (304, None)])
def test_a_length_is_sent_where_there_may_be_a_body(
    acme: Organisation, status: int, length: str | None
) -> None:
    response = call(make_hook(make_script(acme, f"return Reply{{status = {status}}}")))

    assert response.status_code == status
    assert response.headers.get("Content-Length") == length


def test_an_unknown_status_is_sent_with_a_reason(acme: Organisation) -> None:
    response = call(make_hook(make_script(acme, "return Reply{status = 299}")))

    assert (response.status_code, response.reason_phrase) == (299, "Unknown Status Code")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "a b", "", "[::1"])
def test_other_hosts_are_not_answered(echo: IssuedHook, host: str) -> None:
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        answered = call(echo, headers={"Host": "127.0.0.1:8000"})
        refused = call(echo, headers={"Host": host})

    assert (answered.status_code, refused.status_code) == (200, 400)
    assert refused.json()["code"] == "invalid-request"
    assert "evil" not in refused.content.decode()
    assert refused.headers.items() >= PROTECTION.items()
    assert Run.objects.count() == 1


def test_a_request_without_a_host_is_for_the_server_s_address(echo: IssuedHook) -> None:
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        assert call(echo, SERVER_NAME="127.0.0.1").status_code == 200
        assert call(echo, SERVER_NAME="10.0.0.1").status_code == 400


def test_over_https_browsers_are_told_to_stay_there(db: None) -> None:
    sent: dict[str, dict[str, str]] = {}
    proxy = ("HTTP_X_FORWARDED_PROTO", "https")
    with override_settings(SECURE_HSTS_SECONDS=31_536_000, SECURE_PROXY_SSL_HEADER=proxy):
        application = HooksApplication()
        for scheme in ("https", "http", "https, http", "http, https"):
            environ = RequestFactory().get("/hook/", HTTP_X_FORWARDED_PROTO=scheme).environ
            application(environ, lambda status, headers: sent.update({scheme: dict(headers)}))  # noqa: B023

    is_told = {scheme: "Strict-Transport-Security" in headers for scheme, headers in sent.items()}
    assert is_told == {"https": True, "http": False, "https, http": True, "http, https": False}
    assert sent["https"]["Strict-Transport-Security"] == "max-age=31536000"


@pytest.mark.parametrize(
    "path",
    [
        *("/hook", "//hook/a/b/c", "/HOOK/a/b/c", "/hookx/a/b/c", "/hook/", "/hook//b/c"),
        *("/hook/a/b/", "/hook/a/b/c/", "/hook/a/b/c/d", "/hook/secure/a", "/hook/secure//b"),
        *("/hook/secure/a/b/", "/hook/%ff/%fe/%fd", "/hook/%C3%A9/b/c", "/hook/%0a/%00/%2f"),
        *("/hook/../admin/", "/hook/" + "/" * 2_000),
    ],
)
def test_any_other_address_is_not_found(db: None, path: str) -> None:
    # WSGI's text of the decoded bytes, as a server passes them on.
    response = Client().get("/", PATH_INFO=re.sub("%(..)", _byte, path))

    assert response.status_code == 404
    assert response.json()["code"] == "not-found"


@pytest.mark.parametrize("prefix", ["/hooks/", "/hookx/", "//hook/", "/hook//", "/hook/x/"])
def test_a_hook_has_one_address(echo: IssuedHook, prefix: str) -> None:
    disguised = path_of(echo).replace("/hook/", prefix)
    response = Client().get("/", PATH_INFO=disguised)

    assert response.status_code == 404
    assert Run.objects.count() == 0


def _byte(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def test_a_content_type_that_cannot_be_parsed_is_passed_on(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, 'return params.get("content_type")'))
    content_type = "a/b; charset*=nonsense''%ff"
    response = Client().post(path_of(issued), b"x", content_type=content_type)

    assert response.content == content_type.encode()


def test_an_uncaught_exception_is_one_event_and_a_problem(
    echo: IssuedHook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("mhs_abcdef")

    monkeypatch.setattr("hooks.flows.run_call.run_script", fail)
    caplog.handler.setFormatter(event_formatter(is_json=True))
    client = Client(raise_request_exception=False)
    response = client.post(path_of(echo) + "?token=of-others", b"x", content_type="text/plain")

    assert response.status_code == 500
    assert response.json()["code"] == "internal-error"
    assert response.headers.items() >= PROTECTION.items()
    [event] = [json.loads(line) for line in caplog.text.splitlines()]
    assert (event["level"], event["event"]) == ("error", "request_failed")
    assert event["request_id"] == response.json()["requestId"]
    assert event["hook"] == str(echo.hook.pk)
    assert event["request"].endswith(f"/{echo.hook.script_id}/[redacted]")
    assert "RuntimeError: mhs_[redacted]" in event["exception"]
    assert "of-others" not in caplog.text


def test_the_log_context_is_that_of_this_request(echo: IssuedHook) -> None:
    reply = call(echo)
    of_call = bound()
    refused = Client().get("/hook/a/b/c")

    assert of_call["request_id"] == reply["X-Request-Id"]
    assert str(of_call["run"]) == reply["Moonhook-Run-Id"]
    assert str(of_call["hook"]) == str(echo.hook.pk)
    assert bound() == {"request_id": refused["X-Request-Id"]}


def test_the_end_of_a_request_is_signalled_when_the_body_is_sent(db: None) -> None:
    ended: list[object] = []

    def note(sender: object, **_: object) -> None:
        ended.append(sender)

    environ = RequestFactory().get("/hook/a").environ
    body: Any = get_internal_wsgi_application()(environ, lambda status, headers: None)
    request_finished.connect(note)
    try:
        before = list(ended)
        body.close()
    finally:
        request_finished.disconnect(note)

    assert (before, ended) == ([], [HooksApplication])
