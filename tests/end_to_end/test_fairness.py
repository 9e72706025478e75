"""One organisation's slow scripts delay neither others nor /session."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.held_server import HeldServer
from tests.moonhook_server import MoonhookServer
from tests.node import new_hook
from tests.sessions import call, graphql, machine_token

# Starts whole servers, several times.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    """One web worker with two sandboxes and eight threads."""
    server = MoonhookServer(
        Path(tmp_path_factory.mktemp("data")),
        SANDBOX_SLOTS="2",
        WEB_CONCURRENCY="1",
        WEB_THREADS="8",
        HTTP_ALLOWED_NETWORKS="127.0.0.1/32",
    )
    with server.running():
        yield server


def hook_of(moonhook: MoonhookServer, token: str, source: str) -> str:
    return moonhook.url + new_hook(moonhook, token, source)[1]


def test_slow_scripts_delay_neither_other_tenants_nor_sessions(moonhook: MoonhookServer) -> None:
    acme, globex = machine_token(moonhook, "Acme"), machine_token(moonhook, "Globex")
    quick = hook_of(moonhook, globex, 'return "quick"')
    with HeldServer().running() as held, ThreadPoolExecutor(5) as executor:
        slow = hook_of(moonhook, acme, held.script("slow"))
        slow_calls = [executor.submit(call, "POST", slow) for _ in range(5)]
        held.wait_until_begun()
        beside = [call("POST", quick)[:2] for _ in range(5)]
        session = call("GET", f"{moonhook.url}/session", None, {"Authorization": f"Bearer {acme}"})
        # One has the organisation's only sandbox, the others are refused after a second.
        eventually(lambda: sum(each.done() for each in slow_calls) == 4)
        held.may_go_on.set()
        answers = [each.result() for each in slow_calls]

    assert beside == [(200, b"quick")] * 5
    assert session[0] == 200
    assert sorted(status for status, _, _ in answers) == [200, 503, 503, 503, 503]
    refused = next(answer for answer in answers if answer[0] == 503)
    assert json.loads(refused[1])["code"] == "busy"
    assert int(refused[2]["Retry-After"]) >= 1
    count = "{ runs { totalCount } }"
    assert graphql(f"{moonhook.url}/admin/graphql", count, acme) == {"runs": {"totalCount": 1}}
