"""Every starter does what it says, in the real sandbox, with its own sample request."""

import hmac
import json
import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.flows.api_keys import issue_api_key
from accounts.flows.notices import warn_of_expiry
from accounts.models import Organisation
from hooks.models import Hook
from scripts_engine.admin.scripts.starters import STARTERS, Starter
from scripts_engine.flows.alert_script import set_alert_script
from scripts_engine.flows.failure_notices import tell_of_failures
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.runs.execution import try_new_script, try_script
from scripts_engine.runs.spec import NOBODY, Event
from scripts_engine.secrets import set_secret
from tests import factories
from tests.working_queue import queue, work_all

pytestmark = pytest.mark.django_db

BY_TITLE = {starter.title: starter for starter in STARTERS}
REPLIES = {
    "GitHub push": {"repository": "acme/shop", "commits": 2},
    "Stripe event": {"received": "evt_1NG8Du2eZvKYlo2C", "amount": "19.99 EUR"},
    "CSV": [
        {"product": "Tea, green", "quantity": "2", "price": "4.50"},
        {"product": "Pot", "quantity": "1", "price": "19.90"},
    ],
    "Alerts to chat": {
        "text": "Acme: a run of “ship order” was given up: line 3: the shop answered 503\n"
        "https://hooks.example.com/admin/scripts_engine/script/0f3c1a52/change/"
    },
    "Call of a JSON API": {"repository": "lua/lua", "stars": 8000},
}


class Repositories(BaseHTTPRequestHandler):
    """Answers as GitHub's API does for one repository."""

    def do_GET(self) -> None:
        is_known = self.path == "/repos/lua/lua"
        body = b'{"full_name": "lua/lua", "stargazers_count": 8000}' if is_known else b"{}"
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def api_url(settings: Any) -> Iterator[str]:
    settings.HTTP_ALLOWED_NETWORKS = [ip_network("127.0.0.1/32")]
    server = HTTPServer(("127.0.0.1", 0), Repositories)
    threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def event_of(starter: Starter, **changes: Any) -> Event:
    headers = tuple(tuple(line.split(": ", 1)) for line in starter.headers.split("\n"))
    values = {"body": starter.body.encode(), "headers": headers} | changes
    return Event(method=starter.method, query="", client_address="", **values)


def run_of(acme: Organisation, starter: Starter, source: str = "", **changes: Any) -> Run:
    event = event_of(starter, **changes)
    return try_new_script(acme, event=event, author=NOBODY, source=source or starter.source)


@pytest.mark.parametrize("title", REPLIES)
def test_a_starter_answers_its_sample_request(acme: Organisation, api_url: str, title: str) -> None:
    starter = BY_TITLE[title]
    source = starter.source.replace("https://api.github.com", api_url)

    run = run_of(acme, starter, source)

    assert run.error_message == ""
    assert run.response_status == 200
    assert json.loads(run.response_body) == REPLIES[title]
    assert run.logs or title == "Call of a JSON API"


def test_the_form_is_thanked(acme: Organisation) -> None:
    run = run_of(acme, BY_TITLE["HTML form"])

    assert run.response_body == b"Thank you, Alice Tee."


def test_every_starter_has_a_test() -> None:
    assert {*REPLIES, "HTML form"} == set(BY_TITLE)


def test_a_form_without_an_address_is_refused(acme: Organisation) -> None:
    run = run_of(acme, BY_TITLE["HTML form"], body=b"name=Alice")

    assert run.response_status == 422


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (b"", []),
        (b"a,b\n", []),
        (b"a,b\r\n1,2\r\n", [{"a": "1", "b": "2"}]),
        (b"a,b\n1,\n", [{"a": "1", "b": ""}]),
        (b'a\n"say ""hi"""\n', [{"a": 'say "hi"'}]),
    ],
)
def test_csv_is_parsed(acme: Organisation, body: bytes, rows: list[dict[str, str]]) -> None:
    run = run_of(acme, BY_TITLE["CSV"], body=body)

    assert run.error_message == ""
    assert json.loads(run.response_body) == rows


def test_an_open_quote_in_csv_ends_the_run(acme: Organisation) -> None:
    run = run_of(acme, BY_TITLE["CSV"], body=b'a\n"tea\n')

    assert "a quote is not closed" in run.error_message


def test_a_repository_that_is_not_found_is_a_bad_gateway(acme: Organisation, api_url: str) -> None:
    starter = BY_TITLE["Call of a JSON API"]
    source = starter.source.replace("https://api.github.com", api_url)

    run = run_of(acme, starter, source, body=b'{"repository": "no/such"}')

    assert run.response_status == 502
    assert json.loads(run.response_body) == {"error": "GitHub answered 404"}


class Chat(BaseHTTPRequestHandler):
    """An incoming webhook, which keeps what is posted."""

    posted: list[Any]

    def do_POST(self) -> None:
        self.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def chat(acme: Organisation, settings: Any) -> Iterator[list[Any]]:
    """What a chat was sent whose address Acme has as a secret."""
    settings.HTTP_ALLOWED_NETWORKS = [ip_network("127.0.0.1/32")]
    posted: list[Any] = []
    server = HTTPServer(("127.0.0.1", 0), type("AcmeChat", (Chat,), {"posted": posted}))
    threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/hooks/T0"
    set_secret(acme, name="CHAT_WEBHOOK", value=address)
    yield posted
    server.shutdown()
    server.server_close()


def test_the_alert_script_posts_real_alerts_to_the_chat(
    acme: Organisation, hook: Hook, chat: list[Any]
) -> None:
    script = factories.make_script(acme, BY_TITLE["Alerts to chat"].source, name="alerts")
    set_alert_script(acme, script)
    failed = factories.make_past_run(hook, timezone.now(), "failed", error_message="no tea")
    tell_of_failures()
    factories.make_past_run(hook, timezone.now())
    tell_of_failures()
    give_up = 'return Fail{reason = "no stock"}'
    queue(factories.hook_that(acme, give_up, name="ship"))
    issue_api_key(acme, name="till", expires_at=timezone.now() + timedelta(hours=5))
    warn_of_expiry()
    runs = [run for run in work_all() if run.trigger == Trigger.ALERT]
    runs += work_all()

    assert failed.script.name == "echo"
    assert [run.error_message for run in runs if run.error_message] == []
    lines = [each["text"].split("\n")[0] for each in chat]
    assert lines[0] == "Acme: “echo” fails: no tea"
    assert lines[1] == "Acme: “echo” works again"
    assert lines[2] == "Acme: release 4 by Moonhook "
    assert lines[4].startswith("Acme: till (mhk_")
    assert "expires on 20" in lines[4]
    assert lines[-1] == "Acme: a run of “ship” was given up: no stock"


@pytest.fixture
def signed_push(acme: Organisation) -> Script:
    """A script made of the GitHub starter with its signature check, which is in comments."""
    set_secret(acme, name="GITHUB_SECRET", value="a secret of the webhook")
    source = BY_TITLE["GitHub push"].source
    checking = re.sub(r"(?m)^-- (local|if|  return|end)", r"\1", source)
    assert checking.count("--") == source.count("--") - 4
    return factories.make_script(acme, checking)


def push(script: Script, secret: bytes) -> Run:
    starter = BY_TITLE["GitHub push"]
    digest = hmac.digest(secret, starter.body.encode(), "sha256").hex()
    headers = (("X-GitHub-Event", "push"), ("X-Hub-Signature-256", f"sha256={digest}"))
    event = event_of(starter, headers=headers)
    return try_script(script, event=event, author=NOBODY, trigger=Trigger.ADMIN)


def test_the_signature_check_of_the_github_starter_lets_github_in(signed_push: Script) -> None:
    assert push(signed_push, b"a secret of the webhook").response_status == 200


def test_the_signature_check_of_the_github_starter_refuses_others(signed_push: Script) -> None:
    run = push(signed_push, b"another secret")

    assert (run.response_status, bytes(run.response_body)) == (401, b"wrong signature")
    assert run.logs == []


def test_the_page_has_the_starters(as_bob: Client) -> None:
    page = as_bob.get(reverse("admin:scripts_engine_script_add")).content.decode()

    assert 'id="script-starters"' in page
    assert "refs/heads/main" in page
