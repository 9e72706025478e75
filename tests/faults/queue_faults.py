"""The five faults of a queue on PostgreSQL, for tests and for `benchmarks/queue_faults.py`.

They are those of a public comparison of queues on PostgreSQL
(https://github.com/hardbyte/postgresql-job-queue-benchmarking), written again for this one.
"""

import contextlib
import time
from collections.abc import Callable
from contextlib import ExitStack

import psycopg

from tests.faults.queue_nodes import kill_one, runners
from tests.moonhook_server import MoonhookServer
from tests.private_servers import PrivatePostgres

PAUSE_SECONDS = 1.0
_OTHERS = (
    b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    b" WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
)

Fault = Callable[[PrivatePostgres, list[MoonhookServer], float], None]
"""Goes on for that many seconds, then leaves everything to itself."""


def restart(postgres: PrivatePostgres, nodes: list[MoonhookServer], seconds: float) -> None:
    postgres.stop()
    postgres.start()
    time.sleep(seconds)


def kill_backends(postgres: PrivatePostgres, nodes: list[MoonhookServer], seconds: float) -> None:
    """All connections are cut, again and again."""
    ends_at = time.monotonic() + seconds
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        while time.monotonic() < ends_at:
            connection.execute(_OTHERS)
            time.sleep(PAUSE_SECONDS)


def exhaust_connections(
    postgres: PrivatePostgres, nodes: list[MoonhookServer], seconds: float
) -> None:
    """Somebody else takes every connection that the server has, and those of the nodes."""
    ends_at = time.monotonic() + seconds
    with ExitStack() as held:
        first = held.enter_context(psycopg.connect(postgres.url, autocommit=True))
        own = [first.info.backend_pid]
        while time.monotonic() < ends_at:
            with contextlib.suppress(psycopg.OperationalError):
                while True:
                    one = held.enter_context(psycopg.connect(postgres.url, autocommit=True))
                    own.append(one.info.backend_pid)
            first.execute(_OTHERS + b" AND pid <> ALL(%s)", [own])


def kill_runner(postgres: PrivatePostgres, nodes: list[MoonhookServer], seconds: float) -> None:
    kill_one(nodes[0], runners)
    time.sleep(seconds)


def kill_runners_repeatedly(
    postgres: PrivatePostgres, nodes: list[MoonhookServer], seconds: float
) -> None:
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        for node in nodes:
            kill_one(node, runners)
        time.sleep(PAUSE_SECONDS)


FAULTS: dict[str, Fault] = {
    "restart of PostgreSQL": restart,
    "backends killed": kill_backends,
    "connections exhausted": exhaust_connections,
    "runner killed": kill_runner,
    "runners killed repeatedly": kill_runners_repeatedly,
}
