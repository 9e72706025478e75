"""PostgreSQL becomes read-only for a while, as every failover shows it: calls and queued runs."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.faults.queue_nodes import Database, accepting_hook, queue_nodes, runner_of
from tests.faults.test_queue_on_sqlite import SLOW_AT_FIRST
from tests.moonhook_server import MoonhookServer
from tests.node import new_hook
from tests.private_servers import PrivatePostgres
from tests.sessions import call, machine_token

pytestmark = pytest.mark.slow

CALLS = 100


@pytest.fixture(scope="module")
def node(
    postgres: PrivatePostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MoonhookServer]:
    directory = Path(tmp_path_factory.mktemp("node"))
    with queue_nodes(directory, 1, postgres.url) as [node]:
        yield node


@contextmanager
def read_only(postgres: PrivatePostgres) -> Iterator[None]:
    postgres.become_read_only()
    try:
        yield
    finally:
        postgres.become_writable()


def code_of(answer: tuple[int, bytes, object]) -> tuple[int, str]:
    status, body, headers = answer
    if status < 400:
        return status, ""
    assert headers["Retry-After"] == "5"  # type: ignore[index]
    return status, json.loads(body)["code"]


def test_no_call_is_an_internal_error(node: MoonhookServer, postgres: PrivatePostgres) -> None:
    _, path = new_hook(node, machine_token(node), 'return "done"')
    accepting = accepting_hook(node, "return 'done'")
    paths = [node.url + path, node.url + accepting] * (CALLS // 2)
    database = Database(postgres.url)
    runs = len(database.runs())
    with ThreadPoolExecutor(8) as executor:
        before = Counter(executor.map(lambda each: code_of(call("POST", each)), paths))
        with read_only(postgres):
            meanwhile = Counter(executor.map(lambda each: code_of(call("POST", each)), paths))
            ready, _, _ = call("GET", f"{node.url}/readyz")
        after = Counter(executor.map(lambda each: code_of(call("POST", each)), paths))
    eventually(database.is_queue_empty)

    assert before == after == {(200, ""): CALLS // 2, (202, ""): CALLS // 2}
    assert meanwhile == {(503, "run-not-recorded"): CALLS}
    assert ready == 503
    assert len(database.runs()) - runs == 2 * CALLS
    assert {run.status for run in database.runs()} == {"succeeded"}
    assert "Traceback" not in node.output


def test_runs_that_end_meanwhile_keep_their_results_and_run_once(
    node: MoonhookServer, postgres: PrivatePostgres
) -> None:
    database = Database(postgres.url)
    hook = node.url + accepting_hook(node, SLOW_AT_FIRST, timeout_seconds=5)
    runner, waited = runner_of(node), node.output.count("The queue waits for the database")
    accepted = [call("POST", hook, b"2") for _ in range(2)]
    ids = {str(headers["Moonhook-Run-Id"]).replace("-", "") for _, _, headers in accepted}

    def attempts() -> list[tuple[int, str]]:
        found = [run for run in database.runs() if run.first_id in ids]
        return sorted((run.attempt, run.status) for run in found)

    eventually(lambda: attempts() == [(1, "running")] * 2)
    with read_only(postgres):
        eventually(lambda: node.output.count("The queue waits for the database") > waited + 3)
        meanwhile = attempts()
    eventually(database.is_queue_empty)

    assert [status for status, _, _ in accepted] == [202] * 2
    assert meanwhile == [(1, "running")] * 2
    assert attempts() == [(1, "succeeded")] * 2
    assert runner_of(node) == runner
    assert "Traceback" not in node.output
