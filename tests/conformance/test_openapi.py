"""The served OpenAPI document against the server: schemathesis with every check on."""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis

from tests.moonhook_server import ROOT, MoonhookServer
from tests.sessions import call, graphql, open_session

HERE = Path(__file__).resolve().parent
SCRIPT = "return {body = params.get('body')}"

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    server = MoonhookServer(tmp_path_factory.mktemp("data"), RATE_LIMITS="off")
    with server.running():
        yield server


@pytest.fixture(scope="module")
def login(moonhook: MoonhookServer) -> dict[str, str]:
    acme = json.loads(moonhook.manage("create_organisation", "Acme", "--json"))
    key = json.loads(
        moonhook.manage("create_api_key", "--organisation", acme["id"], "--name", "k", "--json")
    )
    return {"credential": "ApiKey", "uid": key["key"], "password": key["secret"]}


@pytest.fixture(scope="module")
def credentials(moonhook: MoonhookServer, login: dict[str, str]) -> dict[str, str]:
    """The environment of schemathesis_credentials.py and of schemathesis_hook.toml."""
    session = open_session(moonhook, **login)
    endpoint = f"{moonhook.url}/admin/graphql"
    script = graphql(
        endpoint,
        'mutation($source: String!) { createScript(name: "echo", source: $source) { id } }',
        session["token"],
        source=SCRIPT,
    )["createScript"]["id"]
    issued = graphql(
        endpoint,
        "mutation($script: ID!) { createHook(script: $script) { hook { id } callToken } }",
        session["token"],
        script=script,
    )["createHook"]
    basic = f"{issued['hook']['id']}:{issued['callToken']}"
    return {
        "MOONHOOK_URL": moonhook.url,
        "MOONHOOK_LOGIN": json.dumps(login),
        "MOONHOOK_BASIC": base64.b64encode(basic.encode()).decode(),
        "MOONHOOK_ORGANISATION": session["organisation"]["id"],
        "MOONHOOK_SCRIPT": script,
        "MOONHOOK_CALL_TOKEN": issued["callToken"],
    }


def run_schemathesis(
    moonhook: MoonhookServer, settings: str, *options: str, **environment: str
) -> str:
    """What it printed; fails when it found anything. Its settings are in the .toml file."""
    run = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"),
            *("--config-file", HERE / settings, "run", f"{moonhook.url}/openapi.json"),
            *("--checks", "all", "--no-color", "--generation-database", "none", *options),
        ],
        cwd=moonhook.environment["MOONHOOK_DATA_DIR"],
        env=moonhook.environment | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_nothing_is_found_without_credentials(moonhook: MoonhookServer) -> None:
    assert "11 selected / 11 total" in run_schemathesis(moonhook, "schemathesis.toml")


def test_nothing_is_found_with_credentials(
    moonhook: MoonhookServer, credentials: dict[str, str]
) -> None:
    printed = run_schemathesis(
        moonhook,
        "schemathesis_hook.toml",
        SCHEMATHESIS_HOOKS="tests.conformance.schemathesis_credentials",
        **credentials,
    )

    assert "11 selected / 11 total" in printed
    assert "404 Not Found" not in printed


def test_the_life_of_a_session_is_as_described(
    moonhook: MoonhookServer, login: dict[str, str]
) -> None:
    """What guessing does not reach: a login that succeeds, and what follows it."""
    described: Any = schemathesis.openapi.from_url(f"{moonhook.url}/openapi.json")["/session"]

    opened = described["POST"].Case(body=login, media_type="application/json").call_and_validate()
    bearer = {"Authorization": f"Bearer {opened.json()['token']}"}
    shown = described["GET"].Case(headers=bearer).call_and_validate()
    ended = described["DELETE"].Case(headers=bearer).call_and_validate()
    gone = described["GET"].Case(headers=bearer).call_and_validate()

    statuses = [answer.status_code for answer in (opened, shown, ended, gone)]
    assert statuses == [201, 200, 204, 401]


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {"Content-Type": "application/json"}, 400),
        (b"{}", {"Content-Type": "application/json"}, 400),
        (b"{}", {"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, 403),
        (b" " * 16_385, {"Content-Type": "application/json"}, 413),
        (b"{}", {"Content-Type": "text/plain"}, 415),
    ],
)
def test_a_refused_login_is_as_described(
    moonhook: MoonhookServer, body: bytes, headers: dict[str, str], status: int
) -> None:
    document: Any = schemathesis.openapi.from_url(f"{moonhook.url}/openapi.json")
    answered, content, answer_headers = call("POST", f"{moonhook.url}/session", body, headers)
    described = document["/session"]["POST"]
    response = schemathesis.Response(
        status_code=answered,
        headers={name.lower(): [value] for name, value in answer_headers.items()},
        content=content,
        request=None,
        elapsed=0,
        verify=False,
    )

    assert answered == status
    described.validate_response(response)
