"""The attack suite through the real server, with an honest tenant beside it."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from scripts_engine.sandbox import Attack, script_attacks
from scripts_engine.sandbox.attacks.suite import HOST_SCRIPTS
from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer
from tests.sessions import call, graphql, machine_token

pytestmark = pytest.mark.slow

# Without its host, a script finds no http, queue, store and secrets; here it has them.
# Hostile libraries are not even saved: their cycles and missing names are refused.
ATTACKS = [
    *(
        attack
        for attack in script_attacks()
        if not attack.name.startswith("host_") and not attack.libraries.by_key
    ),
    *script_attacks(HOST_SCRIPTS),
]
STATUS = {
    "succeeded": "Succeeded",
    "failed": "Failed",
    "timed-out": "TimedOut",
    "out-of-memory": "OutOfMemory",
    "reply-too-large": "Failed",
}
CREATE = """mutation($name: String!, $source: String!) {
    createScript(name: $name, source: $source) { id } }"""
LIMIT = "mutation($id: ID!, $s: Float!) { updateScript(id: $id, timeoutSeconds: $s) { id } }"
ISSUE = "mutation($id: ID!) { createHook(script: $id) { hook { url } } }"
RUN = "query($id: ID!) { run(id: $id) { status responseBody error { message } } }"
HONEST = """store.set("honest", secrets.get("HONEST_KEY"), 600)
    store.set_if_absent("honest_once", 1, {ttl = 600})
    leaked = "state of the honest tenant"
    return { FromJson(params.get("body")).n, store.get("honest"), #params.get("body") }"""
SPY = """local found = {}
    for name in next, _G do
        if name == "leaked" or name == "planted" then found[#found + 1] = name end
    end
    if store.get("honest") ~= nil then found[#found + 1] = "stored" end
    if secrets.get("HONEST_KEY") ~= nil then found[#found + 1] = "secret" end
    return array(found)"""


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    with MoonhookServer(Path(tmp_path_factory.mktemp("data"))).running() as server:
        yield server


class Tenant:
    def __init__(self, moonhook: MoonhookServer, name: str) -> None:
        self.token = machine_token(moonhook, name)
        self.admin = f"{moonhook.url}/admin/graphql"

    def ask(self, query: str, **variables: Any) -> Any:
        return graphql(self.admin, query, self.token, **variables)

    def hook(self, name: str, source: str, seconds: float = 10) -> str:
        script = self.ask(CREATE, name=name, source=source)["createScript"]["id"]
        self.ask(LIMIT, id=script, s=seconds)
        url: str = self.ask(ISSUE, id=script)["createHook"]["hook"]["url"]
        return url


def attack_through(tenant: Tenant, attack: Attack) -> tuple[str, str, str]:
    """The attack's name, how its run ended, and what it said."""
    # Errors of deep stacks repeat the script's name until their text is full.
    name = str(ATTACKS.index(attack))
    hook = tenant.hook(name, attack.source, attack.limits.wall_seconds)
    _, _, headers = call("POST", hook)
    run = tenant.ask(RUN, id=headers["Moonhook-Run-Id"])["run"]
    said = run["error"]["message"] if run["error"] else run["responseBody"] or ""
    return attack.name, run["status"], said


def test_attacks_end_as_expected_and_do_not_affect_others(moonhook: MoonhookServer) -> None:
    mallory, honest, spy = (Tenant(moonhook, name) for name in ("Mallory", "Honest", "Spy"))
    honest.ask('mutation { setSecret(name: "HONEST_KEY", value: "honest value") { name } }')
    honest_hook, spy_hook = honest.hook("honest", HONEST), spy.hook("spy", SPY)
    is_over = threading.Event()
    beside: list[tuple[int, bytes]] = []
    spied: list[bytes] = []

    def work_beside() -> None:
        while not is_over.is_set():
            body = json.dumps({"n": len(beside)}).encode()
            beside.append(call("POST", honest_hook, body)[:2])
            spied.append(call("POST", spy_hook)[1])

    compiled = [attack for attack in ATTACKS if attack.name != "memory_deep_source"]
    with ThreadPoolExecutor(3) as executor:
        worker = executor.submit(work_beside)
        try:
            ended = list(executor.map(lambda attack: attack_through(mallory, attack), compiled))
            eventually(lambda: len(beside) > 50)
        finally:
            is_over.set()
        worker.result()

    unexpected = [
        (attack.expected, outcome)
        for attack, outcome in zip(compiled, ended, strict=True)
        if outcome[1] != STATUS[attack.expected_kind] or attack.expected_text not in outcome[2]
    ]
    assert unexpected == []
    wrong = [
        answer
        for number, answer in enumerate(beside)
        if answer[0] != 200 or json.loads(answer[1])[:2] != [number, "honest value"]
    ]
    assert wrong == []
    assert set(spied) == {b"[]"}
