"""kill -9 of everything that works a queue, over and over, under load.

What was accepted is there, runs to its end, and never twice at the same time.
"""

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from pathlib import Path

import psycopg
import pytest

from tests.eventually import eventually
from tests.faults.queue_nodes import (
    VICTIMS,
    Database,
    accepting_hook,
    check_runs,
    kill_at_work,
    kill_one,
    queue_nodes,
)
from tests.life_cycle.load import Load
from tests.moonhook_server import MoonhookServer
from tests.private_servers import PrivatePostgres
from tests.size import sized

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)

# How often each of the faults is caused; at full size for about ten minutes.
ROUNDS = sized(small=1, full=80)
ROUNDS_OF_THREE_NODES = sized(small=1, full=25)
PAUSE_SECONDS = 1.5
# For leases that must end, pauses before restarts, and delays of attempts.
PATIENCE_SECONDS = sized(small=300, full=900)

Fault = Callable[[], object]


def cause(faults: list[Fault]) -> None:
    for fault in faults:
        fault()
        time.sleep(PAUSE_SECONDS)


def kills(nodes: list[MoonhookServer], database: Database) -> list[Fault]:
    """All runners at work, then a process of each kind, by turns of another node."""
    one_by_one = [partial(kill_one, node, find) for find, node in zip(VICTIMS, cycle(nodes))]
    return [partial(kill_at_work, nodes, database), *one_by_one]


def restart(postgres: PrivatePostgres) -> None:
    postgres.stop()
    postgres.start()


def cut_connections(postgres: PrivatePostgres) -> None:
    with psycopg.connect(postgres.url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )


def put_under_load(
    nodes: list[MoonhookServer], database: Database, faults: list[Fault]
) -> list[Load]:
    """Causes the faults while all nodes are called; returns when nothing is left to do."""
    hook = accepting_hook(nodes[0])
    loads = [Load(node.url + hook, pause_seconds=0.2 * len(nodes)) for node in nodes]
    with ExitStack() as running:
        for load in loads:
            running.enter_context(load.running(callers=3))
        cause(faults)
        before = [len(load.runs) for load in loads]
        eventually(
            lambda: all(len(load.runs) > n + 5 for load, n in zip(loads, before, strict=True)),
            seconds=PATIENCE_SECONDS,
        )
    eventually(database.is_queue_empty, seconds=PATIENCE_SECONDS)
    return loads


def test_one_node_on_sqlite(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/moonhook.sqlite3")
    with queue_nodes(tmp_path, 1, database.url) as nodes:
        faults = kills(nodes, database) * ROUNDS
        loads = put_under_load(nodes, database, faults)
    statuses = check_runs(loads, database)
    logger.info("%d faults, %s", len(faults), dict(statuses))

    assert statuses["lost"] > 0


def test_three_nodes_on_a_postgresql_that_restarts(
    postgres: PrivatePostgres, tmp_path: Path
) -> None:
    database = Database(postgres.url)
    with queue_nodes(tmp_path, 3, postgres.url, DATABASE_POOL_SIZE="12") as nodes:
        of_database = [partial(restart, postgres), partial(cut_connections, postgres)]
        faults = (kills(nodes, database) + of_database) * ROUNDS_OF_THREE_NODES
        loads = put_under_load(nodes, database, faults)
    statuses = check_runs(loads, database)
    logger.info("%d faults, %s", len(faults), dict(statuses))

    assert statuses["lost"] > 0
