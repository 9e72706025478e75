"""kill -9 of everything that works a queue, over and over, under load.

What was accepted is there, runs to its end, and never twice at the same time. QUEUE_FAULTS_SECONDS
sets how long.
"""

import logging
import os
import time
from collections import Counter, defaultdict
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
    QueuedRun,
    accepting_hook,
    kill_at_work,
    kill_one,
    queue_nodes,
)
from tests.life_cycle.load import Load
from tests.moonhook_server import MoonhookServer
from tests.private_servers import PrivatePostgres

pytestmark = pytest.mark.slow

logger = logging.getLogger(__name__)

SECONDS = float(os.environ.get("QUEUE_FAULTS_SECONDS", "25"))
PAUSE_SECONDS = 1.5
# For leases that must end, pauses before restarts, and delays of attempts.
PATIENCE_SECONDS = 300 + SECONDS

Fault = Callable[[], object]


def cause(faults: list[Fault]) -> int:
    """One after the other, again and again; how many."""
    ends_at = time.monotonic() + SECONDS
    for count, fault in enumerate(cycle(faults), 1):
        fault()
        if time.monotonic() >= ends_at:
            return count
        time.sleep(PAUSE_SECONDS)
    return 0


def kills(nodes: list[MoonhookServer], database: Database) -> list[Fault]:
    one_by_one = [partial(kill_one, node, find) for find in VICTIMS for node in nodes]
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


def attempts_by_call(runs: list[QueuedRun]) -> dict[str, list[QueuedRun]]:
    calls = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.attempt):
        calls[run.first_id].append(run)
    return calls


def put_under_load(
    nodes: list[MoonhookServer], database: Database, faults: list[Fault]
) -> tuple[list[Load], int]:
    """Causes the faults while all nodes are called; returns when nothing is left to do."""
    hook = accepting_hook(nodes[0])
    loads = [Load(node.url + hook, pause_seconds=0.2 * len(nodes)) for node in nodes]
    with ExitStack() as running:
        for load in loads:
            running.enter_context(load.running(callers=3))
        number = cause(faults)
    eventually(database.is_queue_empty, seconds=PATIENCE_SECONDS)
    return loads, number


def check(loads: list[Load], database: Database) -> Counter[str]:
    """The number of runs of each status."""
    runs, marks = database.runs(), database.marks()
    calls = attempts_by_call(runs)
    accepted = {run.replace("-", "") for load in loads for run in load.runs}

    assert {status for load in loads for status in load.statuses} <= {202, 503}
    assert {status for load in loads for status in load.without_run} <= {503}
    assert accepted <= calls.keys()
    for *earlier, last in calls.values():
        assert [run.attempt for run in (*earlier, last)] == list(range(1, len(earlier) + 2))
        assert {run.status for run in earlier} <= {"lost", "failed", "timed-out"}
        assert last.status == "succeeded"
        # Each attempt starts after the end of the one before, and the last one ran to its end.
        written = marks[last.first_id]
        assert list(map(int, written)) == sorted(map(int, written))
        assert written.endswith(3 * str(last.attempt))
    return Counter(run.status for run in runs)


def test_one_node_on_sqlite(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/moonhook.sqlite3")
    with queue_nodes(tmp_path, 1, database.url) as nodes:
        loads, faults = put_under_load(nodes, database, kills(nodes, database))
    statuses = check(loads, database)
    logger.info("%d faults, %s", faults, dict(statuses))

    assert statuses["succeeded"] > SECONDS
    assert statuses["lost"] > 0


def test_three_nodes_on_a_postgresql_that_restarts(
    postgres: PrivatePostgres, tmp_path: Path
) -> None:
    database = Database(postgres.url)
    with queue_nodes(tmp_path, 3, postgres.url, DATABASE_POOL_SIZE="12") as nodes:
        of_database = [partial(restart, postgres), partial(cut_connections, postgres)]
        loads, faults = put_under_load(nodes, database, kills(nodes, database) + of_database)
    statuses = check(loads, database)
    logger.info("%d faults, %s", faults, dict(statuses))

    assert statuses["succeeded"] > SECONDS
    assert statuses["lost"] > 0
