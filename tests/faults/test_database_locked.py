"""PostgreSQL makes calls wait, with a lock or by its silence; a worker answers others meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.eventually import eventually
from tests.node import Node, new_hook
from tests.private_servers import PrivatePostgres
from tests.sessions import call, machine_token

pytestmark = pytest.mark.slow

CALLS = 8
WAITING_FOR_LOCKS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.fixture(scope="module")
def node(postgres: PrivatePostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Waits for the database longer than what is asked meanwhile takes."""
    directory = Path(tmp_path_factory.mktemp("node"))
    server = Node(directory, DATABASE_URL=postgres.url, DATABASE_TIMEOUT="15")
    server.manage("migrate", "-v0")
    with server.running():
        yield server


@pytest.fixture(scope="module")
def hooks(node: Node) -> list[str]:
    """Of Acme and of Globex."""
    tokens = [machine_token(node, name) for name in ("Acme", "Globex")]
    return [node.url + new_hook(node, token, 'return "quick"')[1] for token in tokens]


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(CALLS) as executor:
        yield executor


@contextmanager
def locked_script(postgres: PrivatePostgres, hook: str) -> Iterator[None]:
    """The hook's script is locked as by a change that has not been committed."""
    script_id = hook.split("/")[-2]
    with psycopg.connect(postgres.url) as connection:
        statement = "SELECT id FROM scripts_engine_script WHERE id = %s FOR UPDATE"
        assert connection.execute(statement, [script_id]).fetchone()
        yield


def is_alive(node: Node) -> bool:
    return call("GET", f"{node.url}/healthz")[0] == 200


def busy_connections(postgres: PrivatePostgres) -> Any:
    return postgres.ask(
        "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND backend_type = 'client backend' AND state <> 'idle'"
    )


def test_calls_wait_for_a_locked_script_and_others_do_not(
    node: Node, postgres: PrivatePostgres, hooks: list[str], executor: ThreadPoolExecutor
) -> None:
    acme, globex = hooks
    with locked_script(postgres, acme):
        waiting = [executor.submit(call, "POST", acme) for _ in range(4)]
        eventually(lambda: postgres.ask(WAITING_FOR_LOCKS))
        rest = [(is_alive(node), call("POST", globex)[0]) for _ in range(5)]
        were_waiting = [not each.done() for each in waiting]

    assert rest == [(True, 200)] * 5
    assert were_waiting == [True] * 4
    assert [each.result()[0] for each in waiting] == [200] * 4
    eventually(lambda: busy_connections(postgres) == 0)


@pytest.mark.parametrize("fault", ["freeze", "stop"])
def test_a_worker_is_alive_while_calls_wait_for_a_lost_database(
    node: Node,
    postgres: PrivatePostgres,
    hooks: list[str],
    executor: ThreadPoolExecutor,
    fault: str,
) -> None:
    assert {each[0] for each in executor.map(lambda _: call("POST", hooks[0]), range(24))} == {200}
    getattr(postgres, fault)()
    try:
        waiting = [executor.submit(call, "POST", hooks[0]) for _ in range(CALLS)]
        alive = [(is_alive(node), any(not each.done() for each in waiting)) for _ in range(3)]
        statuses = [each.result()[0] for each in waiting]
    finally:
        restore = {"freeze": postgres.thaw, "stop": postgres.start}
        restore[fault]()
    eventually(lambda: call("POST", hooks[1])[0] == 200)

    # The node knows at once that nobody listens; it waits for one that keeps silent.
    assert [is_well for is_well, _ in alive] == [True] * 3
    assert fault == "stop" or [are_waiting for _, are_waiting in alive] == [True] * 3
    assert statuses == [503] * CALLS
    eventually(lambda: busy_connections(postgres) == 0)
