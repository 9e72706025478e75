"""What the pages offer to paste into a shell is pasted into one."""

import html
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from django.test import Client

from accounts.models import ApiKey, Organisation
from core.admin.issuing import curl, json_body
from hooks.models import Hook
from scripts_engine.models import Run, Script
from tests import factories
from tests.admin.pages import list_of, page_of, text_of

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
