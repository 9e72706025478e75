"""Two nodes on PostgreSQL: a runner stands still, connections are few, and no news arrives."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.eventually import eventually
from tests.faults.queue_nodes import Database, accepting_hook, queue_nodes, runner_of
from tests.moonhook_server import MoonhookServer
from tests.private_servers import PrivatePostgres
from tests.sessions import call

pytestmark = pytest.mark.slow

TAKES_2_SECONDS = "local ends = os.time() + 3 while os.time() < ends do end return 'done'"
LISTENERS = "FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"


@pytest.fixture(scope="module")
def nodes(
    postgres: PrivatePostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[MoonhookServer]]:
    """Their runners have fewer connections than slots."""
    directory = Path(tmp_path_factory.mktemp("nodes"))
    with queue_nodes(directory, 2, postgres.url, DATABASE_POOL_SIZE="2") as nodes:
        yield nodes


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def nobody_listening(postgres: PrivatePostgres) -> Iterator[None]:
    is_over = threading.Event()

    def cut() -> None:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            while not is_over.wait(0.05):
                connection.execute(f"SELECT pg_terminate_backend(pid) {LISTENERS}".encode())

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(60)


def attempts(database: Database, run_id: str) -> list[tuple[int, str]]:
    found = [run for run in database.runs() if run.first_id == run_id.replace("-", "")]
    return sorted((run.attempt, run.status) for run in found)


def test_the_result_of_a_runner_that_stood_still_is_discarded(
    nodes: list[MoonhookServer], postgres: PrivatePostgres
) -> None:
    database = Database(postgres.url)
    hook = accepting_hook(nodes[0], TAKES_2_SECONDS, timeout_seconds=5)
    first, second = map(runner_of, nodes)
    with stopped(first):
        with stopped(second):
            run_id = str(call("POST", nodes[0].url + hook)[2]["Moonhook-Run-Id"])
            os.kill(first, signal.SIGCONT)
            eventually(lambda: attempts(database, run_id) == [(1, "running")])
            os.kill(first, signal.SIGSTOP)
        eventually(lambda: attempts(database, run_id) == [(1, "lost"), (2, "succeeded")])
    eventually(lambda: "lease lost, result discarded" in nodes[0].output)

    assert attempts(database, run_id) == [(1, "lost"), (2, "succeeded")]


def test_runs_end_with_fewer_connections_than_slots(
    nodes: list[MoonhookServer], postgres: PrivatePostgres
) -> None:
    database = Database(postgres.url)
    hook = accepting_hook(nodes[0])
    accepted = [call("POST", node.url + hook) for node in nodes for _ in range(20)]
    eventually(database.is_queue_empty)

    assert [status for status, _, _ in accepted] == [202] * 40
    for _, _, headers in accepted:
        assert attempts(database, str(headers["Moonhook-Run-Id"]))[-1][1] == "succeeded"


def test_runs_start_although_no_notification_arrives(
    nodes: list[MoonhookServer], postgres: PrivatePostgres
) -> None:
    database = Database(postgres.url)
    hook = accepting_hook(nodes[0], "return 'done'")
    with nobody_listening(postgres):
        eventually(lambda: nodes[0].output.count("Not listening for work") > 1)
        status, _, headers = call("POST", nodes[0].url + hook)
        run_id = str(headers["Moonhook-Run-Id"])
        eventually(lambda: attempts(database, run_id) == [(1, "succeeded")])

    assert status == 202
    # One for runs and one for messages, on each node.
    eventually(lambda: postgres.ask(f"SELECT count(*) {LISTENERS}") == 4)
