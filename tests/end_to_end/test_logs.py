"""The log of a production server: one JSON object per line, without secrets."""

import base64
import json
import re
import socket
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer
from tests.servers import MailServer, SmsGateway
from tests.sessions import call, graphql, machine_token, open_session

pytestmark = pytest.mark.slow

PEPPER = bytes(range(32)).hex()
SECRET_KEY = "signs-cookies-0123456789-" * 3
SCRIPT = "mutation($n: String!, $s: String!) { createScript(name: $n, source: $s) { id } }"
HOOK = "mutation($id: ID!) { createHook(script: $id) { hook { id url secureUrl } callToken } }"
SEND = 'mutation { sendPinCode(email: "alice@example.com", sendVia: Both) }'
CHECK = """mutation($pin: String!, $device: String!) { checkPinCode(
    email: "alice@example.com", pin: $pin, device: $device) { tokenId token } }"""


class Logged(NamedTuple):
    """What was written down, and what must not be in it."""

    output: str
    secrets: dict[str, str]
    pin: str
    script: str
    organisation: str
    hook: str
    run: str
    pin_request: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output.splitlines()]

    def requests(self, **fields: object) -> list[dict[str, Any]]:
        """The access lines that have these fields."""
        return [
            event
            for event in self.events
            if event["logger"] == "moonhook.access" and event.items() >= fields.items()
        ]


def send_raw(server: MoonhookServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(request)
        return connection.recv(4096)


@pytest.fixture(scope="module")
def logged(
    tmp_path_factory: pytest.TempPathFactory, mail_server: MailServer, gateway: SmsGateway
) -> Logged:
    """A walk through every door, with right credentials and wrong ones."""
    server = MoonhookServer(
        Path(tmp_path_factory.mktemp("data")),
        MOONHOOK_ENV="production",
        SECRET_KEY=SECRET_KEY,
        MOONHOOK_PEPPERS=f"1:{PEPPER}",
        PUBLIC_URL="https://hooks.example.com",
        ALLOWED_HOSTS="127.0.0.1",
        EMAIL_URL=mail_server.url,
        SMS_URL=gateway.url,
        LOG_LEVEL="DEBUG",
    )
    with server.running():
        made = walk(server, gateway)
    return made._replace(output=server.output)


def walk(server: MoonhookServer, gateway: SmsGateway) -> Logged:
    admin, user = f"{server.url}/admin/graphql", f"{server.url}/user/graphql"
    token = machine_token(server)
    organisation = graphql(admin, "{ organisation { id } }", token)["organisation"]["id"]
    graphql(
        admin,
        'mutation { createUser(email: "alice@example.com", phone: "+491701234567") { id } }',
        token,
    )
    stored = 'mutation { setSecret(name: "KEY", value: "value-of-a-secret") { name } }'
    graphql(admin, stored, token)
    source = 'print(secrets.get("KEY")) return "hello"'
    script = graphql(admin, SCRIPT, token, n=uuid.uuid4().hex, s=source)["createScript"]["id"]
    issued = graphql(admin, HOOK, token, id=script)["createHook"]
    call_token, url = issued["callToken"], issued["hook"]["url"]
    url = url.replace("https://hooks.example.com", server.url)

    _, _, headers = call("POST", f"{url}?signature=query-secret", b"payload-secret")
    call("POST", url.replace("mhc_", "%6dhc_"))
    call("POST", url + "mistyped")
    pair = base64.b64encode(f"{issued['hook']['id']}:{call_token}".encode()).decode()
    secure = issued["hook"]["secureUrl"].replace("https://hooks.example.com", server.url)
    call("POST", secure, b"", {"Authorization": f"Basic {pair}"})
    send_raw(server, f"GET {url[len(server.url) :]} nonsense\r\n\r\n".encode())
    bad_header = f"GET / HTTP/1.1\r\nHost: x\r\nA {call_token}: Basic {pair}\r\n\r\n"
    send_raw(server, bad_header.encode())

    _, _, pin_headers = call(
        "POST", user, json.dumps({"query": SEND}).encode(), {"Content-Type": "application/json"}
    )
    eventually(lambda: gateway.messages)
    pin = re.findall(r"\b\d{6}\b", gateway.messages[0]["text"])[0]
    device = graphql(user, CHECK, pin=pin, device=str(uuid.uuid4()))["checkPinCode"]
    login = {"credential": "Token", "uid": device["tokenId"], "password": device["token"]}
    session = open_session(server, **login)
    call("POST", f"{server.url}/session", json.dumps(login | {"password": token}).encode())
    call("GET", f"{server.url}/session/{session['token']}")
    # The code over each of both channels; and the notice.
    eventually(lambda: server.output.count('"Task succeeded"') == 3)
    return Logged(
        output="",
        pin=pin,
        secrets={
            "API session": token,
            "call token": call_token.removeprefix("mhc_"),
            "basic credentials": pair,
            "device token": device["token"],
            "device session": session["token"],
            "stored secret": "value-of-a-secret",
            "query": "query-secret",
            "payload": "payload-secret",
            "pepper": PEPPER,
            "SECRET_KEY": SECRET_KEY,
        },
        script=script,
        organisation=organisation,
        hook=issued["hook"]["id"],
        run=headers["Moonhook-Run-Id"],
        pin_request=pin_headers["X-Request-Id"],
    )


def test_every_line_is_an_event(logged: Logged) -> None:
    assert len(logged.events) > 20
    lacking = [
        event
        for event in logged.events
        if not {"timestamp", "level", "logger", "event"} <= event.keys()
    ]
    assert lacking == []


def test_every_process_writes_events(logged: Logged) -> None:
    loggers = {event["logger"] for event in logged.events}

    assert loggers > {
        "config.management.commands.serve",
        "gunicorn.error",
        "moonhook.access",
        "core.logs.context",
    }


def test_no_secret_is_in_any_line(logged: Logged) -> None:
    found = [kind for kind, secret in logged.secrets.items() if secret in logged.output]

    assert found == []
    # Digits alone may happen to stand in an id or in a fraction of a second.
    assert re.search(rf"(?<![0-9a-f.-]){logged.pin}(?![0-9a-f-])", logged.output) is None
    assert f"/hook/{logged.organisation}/{logged.script}/[redacted]" in logged.output


def test_a_hook_call_is_one_line_with_its_ids(logged: Logged) -> None:
    [line] = logged.requests(run=logged.run)
    also = [event for event in logged.events if event.get("request_id") == line["request_id"]]

    assert also == [line]
    assert line["bytes"] == len("hello")
    assert line["duration_ms"] > 0
    assert re.fullmatch("[0-9a-f]{32}", line["request_id"])
    fixed = {
        "method": "POST",
        "path": f"/hook/{logged.organisation}/{logged.script}/[redacted]",
        "status": 200,
        "client": "127.0.0.1",
        "organisation": logged.organisation,
        "script": logged.script,
        "hook": logged.hook,
    }
    assert line.items() >= fixed.items()


def test_a_refused_call_is_logged_without_ids(logged: Logged) -> None:
    refused = logged.requests(status=404, method="POST")

    assert len(refused) == 1
    assert "organisation" not in refused[0]
    assert "hook" not in refused[0]


def test_each_task_names_the_request_that_enqueued_it(logged: Logged) -> None:
    done = [
        event
        for event in logged.events
        if event["event"] == "Task succeeded" and event["task_name"] == "deliver_pin"
    ]

    assert [event["request_id"] for event in done] == [logged.pin_request] * 2
    assert len({uuid.UUID(event["task"]) for event in done}) == 2


def test_a_request_refused_by_gunicorn_is_logged_without_secrets(logged: Logged) -> None:
    refused = [event for event in logged.events if event["event"].startswith("Invalid request")]

    assert len(refused) == 2
    assert [event for event in refused if "request_id" in event] == []
    # The parser says what is wrong without repeating it.
    assert [event for event in refused if re.search(r"mhc_(?!\[redacted)", event["event"])] == []
