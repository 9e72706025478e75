"""Calls that the senders' own npm libraries signed, against a running server."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.moonhook_server import MoonhookServer
from tests.sessions import graphql, machine_token

HERE = Path(__file__).resolve().parent
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(
        not (HERE / "node_modules" / "standardwebhooks").exists(),
        reason="the senders are not installed: npm ci in this folder",
    ),
]

SOURCE = """
return {
  sender = params.get("sender"),
  verified = params.get("verified"),
  event = params.get("event_id") or "none",
}
"""
SECRETS = {"github": "a secret text", "standard-webhooks": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
BODY = '{"action": "opened", "name": "Grüße"}'


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    with MoonhookServer(tmp_path_factory.mktemp("data")).running() as server:
        yield server


class Sender:
    """A hook of a new script whose sender is set through the Admin GraphQL."""

    def __init__(self, moonhook: MoonhookServer, name: str) -> None:
        self.moonhook = moonhook
        self.name = name
        self.token = machine_token(moonhook)
        script = self._ask(
            'mutation($s: String!) {createScript(name: "events", source: $s) {id}}', s=SOURCE
        )["createScript"]["id"]
        issued = self._ask("mutation($s: ID!) {createHook(script: $s) {hook {id url}}}", s=script)[
            "createHook"
        ]["hook"]
        self.hook_id, self.url = issued["id"], issued["url"]
        self._ask(
            "mutation($h: ID!, $n: String!, $v: String!) "
            "{setSender(hook: $h, sender: $n) {id} setSigningSecret(hook: $h, value: $v) {id}}",
            h=self.hook_id,
            n=name,
            v=SECRETS[name],
        )

    def runs(self) -> int:
        asked = self._ask("query($h: ID!) {runs(hook: $h) {totalCount}}", h=self.hook_id)
        count: int = asked["runs"]["totalCount"]
        return count

    def send(self, **changes: str) -> dict[str, Any]:
        sent = subprocess.run(
            ["node", "send.mjs"],
            cwd=HERE,
            env=self.moonhook.environment
            | {
                "HOOK_URL": self.url,
                "SENDER": self.name,
                "SECRET": SECRETS[self.name],
                "BODY": BODY,
                "EVENT_ID": "msg_1",
            }
            | changes,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        answer: dict[str, Any] = json.loads(sent.stdout)
        return answer

    def _ask(self, query: str, **variables: str) -> Any:
        return graphql(f"{self.moonhook.url}/admin/graphql", query, self.token, **variables)


@pytest.mark.parametrize(("name", "event"), [("github", "none"), ("standard-webhooks", "msg_1")])
def test_what_the_library_signed_runs(moonhook: MoonhookServer, name: str, event: str) -> None:
    sender = Sender(moonhook, name)

    answer = sender.send()

    assert answer["status"] == 200
    assert json.loads(answer["body"]) == {"sender": name, "verified": "signed", "event": event}


@pytest.mark.parametrize("name", ["github", "standard-webhooks"])
def test_one_changed_byte_runs_nothing(moonhook: MoonhookServer, name: str) -> None:
    sender = Sender(moonhook, name)
    assert sender.send()["status"] == 200

    refused = sender.send(SENT_BODY=BODY.replace("opened", "Opened"), EVENT_ID="msg_2")

    assert refused["status"] == 401
    assert refused["headers"]["www-authenticate"] == 'Signature realm="hooks"'
    assert json.loads(refused["body"])["code"] == "invalid-signature"
    assert sender.runs() == 1


def test_a_repeated_event_gets_the_first_reply(moonhook: MoonhookServer) -> None:
    sender = Sender(moonhook, "standard-webhooks")
    first = sender.send()

    again = sender.send()

    assert again["body"] == first["body"]
    assert again["headers"]["moonhook-duplicate-of"] == first["headers"]["moonhook-run-id"]
    assert sender.runs() == 1
