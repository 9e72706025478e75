"""The clock of a node is set back by two hours while it serves."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.node import Node, call_hook, new_hook
from tests.sessions import call, graphql, machine_token

pytestmark = pytest.mark.slow

SEND = 'mutation { sendPinCode(email: "alice@example.com", sendVia: Email) }'
TWO_HOURS_BACK = "-7200"


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """The file that says by how many seconds the node's clock is off."""
    file = tmp_path / "clock"
    file.write_text("0")
    return file


@pytest.fixture
def node(tmp_path: Path, clock: Path) -> Iterator[Node]:
    server = Node(
        tmp_path / "node",
        DATABASE_URL=f"sqlite:///{tmp_path}/moonhook.sqlite3",
        PYTHONPATH=str(Path(__file__).parent / "other_clock"),
        OTHER_CLOCK=str(clock),
    )
    server.manage("migrate", "-v0")
    with server.running():
        yield server


def runs_of(node: Node, token: str) -> Any:
    """All of them, page by page."""
    query = """query($after: String) { runs(first: 2, after: $after) {
        nodes { id startedAt } pageInfo { hasNextPage endCursor } } }"""
    rows, after = [], None
    while True:
        page = graphql(f"{node.url}/admin/graphql", query, token, after=after)["runs"]
        rows += page["nodes"]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            return rows


def test_sessions_hooks_and_lists_of_runs_live_on(node: Node, clock: Path) -> None:
    token = machine_token(node)
    _, hook = new_hook(node, token, 'return "ok"')
    before = [call_hook(node, hook) for _ in range(3)]
    clock.write_text(TWO_HOURS_BACK)
    bearer = {"Authorization": f"Bearer {token}"}
    status, body, _ = call("GET", f"{node.url}/session", None, bearer)
    after = [call_hook(node, hook) for _ in range(3)]
    runs = runs_of(node, token)

    assert status == 200
    assert json.loads(body)["expiresAt"] > json.loads(body)["createdAt"]
    assert [answer and answer.status for answer in before + after] == [200] * 6
    assert sorted(run["id"] for run in runs) == sorted(
        answer.run_id or "" for answer in before + after if answer
    )
    assert runs[0]["startedAt"][:13] != runs[-1]["startedAt"][:13]


def test_a_limit_of_a_minute_does_not_last_for_hours(node: Node, clock: Path) -> None:
    user = f"{node.url}/user/graphql"
    body = json.dumps({"query": SEND}).encode()
    headers = {"Content-Type": "application/json"}

    def send() -> Any:
        return json.loads(call("POST", user, body, headers)[1])

    first, second = send(), send()
    clock.write_text(TWO_HOURS_BACK)
    third, fourth = send(), send()

    assert first == third == {"data": {"sendPinCode": True}}
    assert second["errors"][0]["extensions"]["code"] == "RATE_LIMITED"
    assert fourth["errors"][0]["extensions"]["retryAfter"] <= 60
