"""PostgreSQL is stopped, frozen and restarted: responses meanwhile and afterwards."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.held_server import HeldServer
from tests.node import Node, Worker, call_hook, new_hook
from tests.private_servers import PrivatePostgres
from tests.sessions import call, graphql, machine_token

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def token(node: Node) -> str:
    return machine_token(node)


@pytest.fixture(scope="module")
def hook(node: Node, token: str) -> str:
    return new_hook(node, token, 'return "ok"')[1]


@contextmanager
def stopped(postgres: PrivatePostgres) -> Iterator[None]:
    postgres.stop()
    try:
        yield
    finally:
        postgres.start()


@contextmanager
def frozen(postgres: PrivatePostgres) -> Iterator[None]:
    postgres.freeze()
    try:
        yield
    finally:
        postgres.thaw()


def fill_the_pool(node: Node, hook: str) -> None:
    with ThreadPoolExecutor(12) as executor:
        answers = list(executor.map(lambda _: call_hook(node, hook), range(48)))
    assert {answer.status for answer in answers if answer} <= {200, 503}


def ask_everything(node: Node, hook: str, token: str) -> list[tuple[int, str, str | None]]:
    """Status, code and Retry-After of a hook call, GET /session and a GraphQL query."""
    bearer = {"Authorization": f"Bearer {token}"}
    query = json.dumps({"query": "{ organisation { name } }"}).encode()
    requests = [
        ("POST", hook, b"", {}),
        ("GET", "/session", None, bearer),
        (
            "POST",
            "/admin/graphql",
            query,
            bearer
            | {"Content-Type": "application/json", "Accept": "application/graphql-response+json"},
        ),
    ]
    with ThreadPoolExecutor(3) as executor:
        answers = list(
            executor.map(
                lambda request: call(request[0], node.url + request[1], *request[2:]), requests
            )
        )
    return [(status, code_in(body), headers["Retry-After"]) for status, body, headers in answers]


def code_in(body: bytes) -> str:
    document = json.loads(body)
    return str(
        document["errors"][0]["extensions"]["code"] if "errors" in document else document["code"]
    )


UNAVAILABLE = [(503, "unavailable", "5"), (503, "unavailable", "5"), (503, "UNAVAILABLE", "5")]


def test_every_endpoint_reports_a_missing_database_in_one_log_line(
    node: Node, postgres: PrivatePostgres, hook: str, token: str
) -> None:
    fill_the_pool(node, hook)
    logged = len(node.output)
    with stopped(postgres):
        answers = ask_everything(node, hook, token)

    assert answers == UNAVAILABLE
    eventually(lambda: node.output.count("unavailable: ", logged) == 3)
    assert "Traceback" not in node.output[logged:]
    assert hook.rpartition("/")[2] not in node.output


def test_the_first_calls_after_a_restart_succeed(
    node: Node, postgres: PrivatePostgres, hook: str
) -> None:
    fill_the_pool(node, hook)
    with stopped(postgres):
        pass
    answers = [call_hook(node, hook) for _ in range(30)]

    assert [answer and answer.status for answer in answers] == [200] * 30


def test_after_an_outage_calls_succeed_as_soon_as_the_database_is_back(
    node: Node, postgres: PrivatePostgres, hook: str
) -> None:
    with stopped(postgres), ThreadPoolExecutor(4) as executor:
        refused = list(executor.map(lambda _: call_hook(node, hook), range(12)))
    answer = call_hook(node, hook)

    assert {answer and answer.status for answer in refused} == {503}
    assert answer is not None
    assert answer.status == 200


def test_a_run_during_which_the_database_restarts_is_recorded(
    node: Node, postgres: PrivatePostgres, token: str
) -> None:
    with HeldServer().running() as held, ThreadPoolExecutor(1) as executor:
        _, hook = new_hook(node, token, held.script("slow"))
        running = executor.submit(call_hook, node, hook)
        held.wait_until_begun()
        with stopped(postgres):
            pass
        held.may_go_on.set()
        answer = running.result()

    assert answer is not None
    assert (answer.status, answer.body) == (200, b"slow")
    count = f"SELECT count(*) FROM scripts_engine_run WHERE id = '{answer.run_id}'"
    assert postgres.ask(count) == 1


def test_a_run_that_cannot_be_recorded_is_answered_with_an_error(
    node: Node, postgres: PrivatePostgres, token: str
) -> None:
    with HeldServer().running() as held, ThreadPoolExecutor(1) as executor:
        _, hook = new_hook(node, token, held.script("slow"))
        running = executor.submit(call, "POST", node.url + hook)
        held.wait_until_begun()
        with stopped(postgres):
            held.may_go_on.set()
            status, body, headers = running.result()

    assert (status, json.loads(body)["code"]) == (503, "run-not-recorded")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Moonhook-Run-Id"] is None


def test_a_frozen_database_is_not_waited_for_without_end(
    node: Node, postgres: PrivatePostgres, hook: str, token: str
) -> None:
    fill_the_pool(node, hook)
    with frozen(postgres):
        answers = ask_everything(node, hook, token)
    eventually(lambda: (answer := call_hook(node, hook)) and answer.status == 200)

    assert answers == UNAVAILABLE


def test_while_the_database_is_gone_the_process_is_alive_and_not_ready(
    node: Node, postgres: PrivatePostgres
) -> None:
    with stopped(postgres):
        alive, _, _ = call("GET", f"{node.url}/healthz")
        ready, _, _ = call("GET", f"{node.url}/readyz")
    eventually(lambda: call("GET", f"{node.url}/readyz")[0] == 200)

    assert (alive, ready) == (200, 503)


def is_listening(postgres: PrivatePostgres) -> bool:
    """Whether a jobs runner waits for messages and runs."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
    return postgres.ask(asked) == 2


def test_the_jobs_runner_survives_a_missing_database(
    node: Node, postgres: PrivatePostgres, token: str, tmp_path: Path
) -> None:
    worker = Worker(tmp_path, DATABASE_URL=postgres.url)
    worker.start()
    try:
        eventually(lambda: is_listening(postgres))
        with stopped(postgres):
            eventually(lambda: "Messages wait for the database" in worker.output)
        create = 'mutation { createUser(email: "alice@example.com") { id } }'
        send = 'mutation { sendPinCode(email: "alice@example.com", sendVia: Email) }'
        graphql(f"{node.url}/admin/graphql", create, token)
        graphql(f"{node.url}/user/graphql", send)
        eventually(lambda: list(tmp_path.glob("outbox/*")))
    finally:
        worker.stop()

    assert "Traceback" not in worker.output
