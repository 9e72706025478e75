"""Calls of a hook that knows its sender, over the server that runs in production."""

import hashlib
import hmac
import http.client
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer
from tests.sessions import call

# Starts whole servers.
pytestmark = pytest.mark.slow

SECRET = "geheim"
BODY = b'{"id": 7}'
SET_UP = """
import json
from accounts.flows.organisations import create_organisation
from scripts_engine.runs.spec import NOBODY
from hooks.flows.senders import set_sender
from hooks.flows.hooks import issue_hook
from scripts_engine.flows.scripts import create_script
from hooks.flows.senders import set_signing_secret
acme = create_organisation("Acme")
made = {}
for name, sender, options in (
    ("github", "github", None),
    ("large", "github", None),
    ("hmac", "hmac", {"header": "X-Signature", "template": "{method} {url} {body}"}),
):
    script = create_script(acme, name=name, source='return params.get("body")', author=NOBODY)
    issued = issue_hook(script)
    set_sender(issued.hook, sender=sender, hmac=options)
    set_signing_secret(issued.hook, "geheim")
    made[name] = issued.hook.url_with(issued.call_token).partition("/hook/")[2]
print(json.dumps(made))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    with MoonhookServer(tmp_path_factory.mktemp("data"), "--no-demo").running() as server:
        yield server


@pytest.fixture(scope="module")
def hooks(server: MoonhookServer) -> dict[str, str]:
    """The path of the hook of each script."""
    made = json.loads(server.manage("shell", "-v", "0", "-c", SET_UP))
    return {script: f"/hook/{path}" for script, path in made.items()}


def digest(signed: bytes) -> str:
    return hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()


def github(body: bytes = BODY) -> str:
    return f"sha256={digest(body)}"


def send(server: MoonhookServer, target: str, *headers: tuple[str, str]) -> int:
    """The status of a POST with exactly this request target and these headers."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    with closing(connection):
        connection.putrequest("POST", target)
        for name, value in (*headers, ("Content-Length", str(len(BODY)))):
            connection.putheader(name, value)
        connection.endheaders(BODY)
        return connection.getresponse().status


def status_of_large_header(server: MoonhookServer, target: str) -> int | None:
    """``None`` if the server ended the connection before it had read the headers."""
    try:
        return send(server, target, ("X-Hub-Signature-256", "a" * 10_000_000))
    except (OSError, http.client.HTTPException):
        return None


def refused(server: MoonhookServer, script: str) -> list[str]:
    """The reasons of the refused calls that were written so far, oldest first."""
    database = Path(server.environment["MOONHOOK_DATA_DIR"]) / "moonhook.sqlite3"
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(
            "SELECT reason FROM hooks_refusedcall AS refused"
            " JOIN scripts_engine_script AS script ON script.id = script_id"
            " WHERE script.name = ? ORDER BY refused.id",
            [script],
        )
        return [reason for (reason,) in rows]


def test_a_chunked_body_is_verified(server: MoonhookServer, hooks: dict[str, str]) -> None:
    url = server.url + hooks["github"]
    signature = {"X-Hub-Signature-256": github()}

    status, body, _ = call("POST", url, iter([BODY[:3], BODY[3:]]), signature)
    assert (status, body) == (200, BODY)
    status, body, headers = call("POST", url, iter([BODY[:3], BODY[4:]]), signature)
    assert (status, json.loads(body)["code"]) == (401, "invalid-signature")
    assert headers["WWW-Authenticate"] == 'Signature realm="hooks"'
    assert headers["Content-Security-Policy"] == "sandbox"


def test_a_signature_given_twice_is_refused(server: MoonhookServer, hooks: dict[str, str]) -> None:
    signature = ("X-Hub-Signature-256", github())

    assert send(server, hooks["github"], signature) == 200
    assert send(server, hooks["github"], signature, signature) == 401


@pytest.mark.parametrize("query", ["", "?", "?a=%7e%2F&b=+&c=%C3%A9", "?a=1&a=2;3"])
def test_the_url_is_signed_as_it_was_sent(
    server: MoonhookServer, hooks: dict[str, str], query: str
) -> None:
    target = hooks["hmac"] + query
    signed = f"POST {server.url}{target} ".encode() + BODY
    signature = ("X-Signature", digest(signed))

    assert send(server, target, signature) == 200
    assert send(server, f"{server.url}{target}", signature) == 200
    assert send(server, f"{target}&d" if query else f"{target}?d", signature) == 401
    assert send(server, target, ("X-Signature", digest(signed[:-1]))) == 401


def test_an_escaped_path_is_signed_as_it_was_sent(
    server: MoonhookServer, hooks: dict[str, str]
) -> None:
    # %6D is an m, the first letter of every call token.
    target = hooks["hmac"].replace("/mhc_", "/%6Dhc_")
    signature = ("X-Signature", digest(f"POST {server.url}{target} ".encode() + BODY))
    other = ("X-Signature", digest(f"POST {server.url}{hooks['hmac']} ".encode() + BODY))

    assert send(server, target, signature) == 200
    assert send(server, target, other) == 401


def test_headers_of_ten_megabytes_are_refused_by_the_server(
    server: MoonhookServer, hooks: dict[str, str]
) -> None:
    assert status_of_large_header(server, hooks["large"]) in {None, 400, 413, 431}
    assert send(server, hooks["large"], ("X-Hub-Signature-256", github())) == 200

    # Refusals are written in their order, after the answer: one of the large header came first.
    assert send(server, hooks["large"]) == 401
    eventually(lambda: refused(server, "large"))
    assert refused(server, "large") == ["SignatureMissing"]


def test_a_refused_call_is_kept_soon_after_its_answer(
    server: MoonhookServer, hooks: dict[str, str]
) -> None:
    before = refused(server, "github").count("SignatureMissing")
    assert send(server, hooks["github"]) == 401

    def is_kept() -> bool:
        return refused(server, "github").count("SignatureMissing") == before + 1

    eventually(is_kept)


def test_what_was_noted_is_written_when_the_server_stops(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "--no-demo")
    with server.running():
        made = json.loads(server.manage("shell", "-v", "0", "-c", SET_UP))
        assert send(server, f"/hook/{made['github']}") == 401
        server.stop()

    assert refused(server, "github") == ["SignatureMissing"]
