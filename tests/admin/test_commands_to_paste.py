"""What the pages offer to paste into a shell is pasted into one."""

import html
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from django.test import Client

from accounts.models import ApiKey, Organisation, Role, User
from core.admin.issuing import curl, json_body
from hooks.admin.run_as_curl import MAX_BODY_BYTES
from hooks.flows.hooks import delete_hook
from hooks.models import Hook
from scripts_engine.models import Run, Script
from scripts_engine.runs.execution import run_script
from tests import factories
from tests.admin.pages import list_of, logged_in, page_of, text_of
from tests.admin.roles import client_of

HAS_CURL = shutil.which("curl") is not None
needs_curl = pytest.mark.skipif(not HAS_CURL, reason="There is no curl")


@pytest.fixture
def address(transactional_db: None, live_server: Any, settings: Any) -> str:
    settings.PUBLIC_URL = live_server.url
    return str(live_server.url)


def pasted(response: Any, command: str) -> str:
    """What the command of that id on the page prints."""
    found = re.search(rf'<code id="{command}"[^>]*>(.*?)</code>', text_of(response), re.DOTALL)
    assert found is not None
    done = subprocess.run(
        ["/bin/sh", "-eu"],
        input=html.unescape(found[1]),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_curl
def test_a_keys_first_query_answers_with_its_organisation(
    address: str, as_bob: Client, acme: Organisation, acme_script: Script
) -> None:
    page = as_bob.post(
        list_of(ApiKey, "add"),
        {"organisation": str(acme.pk), "name": "sync", "preset": "everything"},
        follow=True,
    )

    answer = json.loads(pasted(page, "first-query"))

    assert answer == {"data": {"organisation": {"name": "Acme"}, "scripts": {"totalCount": 1}}}


@needs_curl
def test_a_keys_first_command_opens_a_session(
    address: str, as_bob: Client, acme: Organisation
) -> None:
    page = as_bob.post(
        list_of(ApiKey, "add"),
        {"organisation": str(acme.pk), "name": "sync", "preset": "everything"},
        follow=True,
    )

    assert json.loads(pasted(page, "curl"))["status"] == "active"


@needs_curl
@pytest.mark.parametrize(
    ("command", "method", "body", "reply"),
    [
        ("curl-post", "POST", b'{"hello": "world"}', "world"),
        ("curl-get", "GET", b"", "world"),
        ("curl-basic", "POST", b'{"hello": "world"}', "world"),
    ],
)
def test_a_hooks_commands_run_its_script(
    address: str,
    as_bob: Client,
    acme: Organisation,
    command: str,
    method: str,
    body: bytes,
    reply: str,
) -> None:
    source = 'return params.query("hello") or FromJson(params.get("body")).hello'
    script = factories.make_script(acme, source)
    page = as_bob.post(
        list_of(Hook, "add"), {"script": str(script.pk), "name": "shop"}, follow=True
    )

    assert pasted(page, command) == reply

    run = Run.objects.get()
    assert (run.hook_id, run.request_method) == (Hook.objects.get().pk, method)
    assert bytes(run.request_body) == body


@pytest.mark.parametrize(
    ("rules", "offered", "said"),
    [
        ({}, {"curl-post", "curl-get", "curl-basic"}, "GET and POST requests to it run"),
        ({"methods": ["GET"]}, {"curl-get"}, "GET requests to it run"),
        ({"methods": ["POST"]}, {"curl-post", "curl-basic"}, "POST requests to it run"),
        ({"sender": "cloudevents"}, {"curl-post", "curl-get", "curl-basic"}, "requests to it run"),
        ({"sender": "github"}, set(), "only those that GitHub has signed run"),
    ],
)
def test_no_command_is_offered_that_the_hook_refuses(
    as_bob: Client, acme_hook: Hook, rules: dict[str, Any], offered: set[str], said: str
) -> None:
    factories.set_rules(acme_hook, **rules)

    text = text_of(as_bob.get(page_of(acme_hook)))

    assert set(re.findall(r'<code id="(curl-\w+)"', text)) == offered
    assert said in text


@pytest.mark.parametrize("text", ["it's", '"$HOME"', "`id`", "a\\b", "<&>;|", "zwei\nZeilen"])
def test_nothing_in_a_command_is_the_shells(text: str) -> None:
    command = curl("http://127.0.0.1/", ("-u", text), *json_body(text)).replace("curl", "set --", 1)

    done = subprocess.run(
        ["/bin/sh", "-c", f'{command}; printf "%s\\0" "$@"'],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split("\0")[:-1] == [
        "-sS",
        "http://127.0.0.1/",
        "-u",
        text,
        "-H",
        "Content-Type: application/json",
        "-d",
        json.dumps(text),
    ]


# --- A recorded call ------------------------------------------------------------------------------


def called(hook: Hook, **changes: Any) -> Run:
    event = factories.event_with(**changes)
    return Run.objects.get(pk=run_script(factories.spec_of(hook), event).run_id)


def curl_of(response: Any) -> str:
    found = re.search(
        r'<pre[^>]*id="request-curl"[^>]*>\n(.*?)</pre>', text_of(response), re.DOTALL
    )
    return "" if found is None else html.unescape(found[1])


BODIES = [
    b"",
    b'{"a": "it\'s", "b": "$HOME `id` \\\\n"}',
    b"@/etc/passwd",
    b"two\nlines\n",
    b"a\r\nb\x1b[201~; id\0",
    b"\xff\xfe binary",
    "Tée ✓".encode(),
]


@needs_curl
@pytest.mark.parametrize("body", BODIES)
def test_a_recorded_call_is_made_again(
    address: str, as_bob: Client, acme: Organisation, body: bytes
) -> None:
    issued = factories.make_hook(factories.make_script(acme, 'return params.get("body")'))
    factories.set_rules(issued.hook, methods=["GET", "POST", "PUT"], allow_path=True)
    headers = (("Content-Type", "text/x-tea; v=1"), ("X-Shop", "it's"), ("X-Empty", ""))
    method, path, query = ("PUT" if body else "GET"), "/orders/a b", "a=1&b=%20"
    run = called(issued.hook, body=body, method=method, path=path, query=query, headers=headers)

    command = curl_of(as_bob.get(page_of(run))).replace("<call-token>", issued.call_token)
    done = subprocess.run(
        ["/bin/sh", "-eu"], input=command.encode(), capture_output=True, check=False, timeout=30
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout == body
    new = Run.objects.exclude(pk=run.pk).get()
    assert new.hook_id == issued.hook.pk
    assert (new.request_method, new.request_path, new.request_query) == (method, path, query)
    assert bytes(new.request_body) == body
    sent = {name.lower(): value for name, value in new.request_headers}
    assert {name.lower(): value for name, value in headers}.items() <= sent.items()


def test_a_query_of_brackets_makes_one_request(as_bob: Client, acme_hook: Hook) -> None:
    run = called(acme_hook, method="GET", query="a=[1-3]&b={x,y}", body=b"")

    command = curl_of(as_bob.get(page_of(run)))

    assert "--globoff" in command
    assert "a=[1-3]&b={x,y}" in command


def test_a_command_has_placeholders_for_secrets(as_bob: Client, acme_hook: Hook) -> None:
    token = "mhs_" + "a" * 32
    run = called(
        acme_hook,
        body=f'{{"secret": "{token}"}}'.encode(),
        query=f"key={token}",
        headers=(
            ("Authorization", "Bearer abcdefghijklmnopqrstuv"),
            ("X-Gitlab-Token", "of another hook"),
            ("X-Key", token),
            ("Host", "moonhook.example.com"),
        ),
    )

    command = curl_of(as_bob.get(page_of(run)))

    assert "<call-token>" in command
    assert "Authorization: <not kept>" in command
    assert "X-Gitlab-Token: <not kept>" in command
    assert "X-Key: <not kept>" in command
    assert token not in command
    assert "of another hook" not in command
    assert "Host" not in command


def test_a_body_that_is_not_kept_is_named_as_a_file(as_bob: Client, acme_hook: Hook) -> None:
    large = called(acme_hook, body=b"a" * (MAX_BODY_BYTES + 1))
    secret = called(acme_hook, body=b"\xff mhs_" + b"a" * 32)

    for run in (large, secret):
        response = as_bob.get(page_of(run))
        assert curl_of(response).endswith("--data-binary @request-body")
        assert "Save the body as the file request-body." in text_of(response)


def test_only_calls_of_hooks_are_commands(as_bob: Client, acme_hook: Hook) -> None:
    run = called(acme_hook)
    assert "Copy as curl" in text_of(as_bob.get(page_of(run)))
    Run.objects.filter(pk=run.pk).update(hook_id=None)

    assert "curl" not in text_of(as_bob.get(page_of(run)))


def test_a_call_of_a_deleted_hook_is_no_command(as_bob: Client, acme_hook: Hook) -> None:
    run = called(acme_hook)
    delete_hook(acme_hook)

    assert curl_of(as_bob.get(page_of(run))) == ""


def test_a_viewer_gets_no_command(acme: Organisation, acme_hook: Hook) -> None:
    run = called(acme_hook, body=b"payload", client_address="203.0.113.77")
    response = client_of(acme, Role.VIEWER).get(page_of(run))

    assert response.status_code == 200
    assert "curl" not in text_of(response)
    assert "203.0.113.77" not in text_of(response)
    assert response.context["as_curl"] == ""


def test_another_organisations_administrator_gets_no_command(
    charlie: User, acme_hook: Hook
) -> None:
    response = logged_in(charlie).get(page_of(called(acme_hook)))

    assert response.status_code == 404
    assert "curl" not in text_of(response)
