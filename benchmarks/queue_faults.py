"""Measures queued runs a second before, during and after each of five faults on PostgreSQL.

    .venv/bin/python benchmarks/queue_faults.py [--rounds 3] [--seconds 8] [part of a name …]

Starts a PostgreSQL of its own and two runners. Before each fault the queue is filled. "After" is
measured when as many seconds have passed since the end of the fault, and nothing is helped along.
The ratio is that of after to before; of several rounds, by turns, the median.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import psycopg

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.faults.queue_faults import FAULTS, Fault  # noqa: E402
from tests.faults.queue_nodes import accepting_hook, runner_of  # noqa: E402
from tests.moonhook_server import MoonhookServer  # noqa: E402
from tests.node import SHARED_SECRETS  # noqa: E402
from tests.private_servers import PrivatePostgres, private_postgres  # noqa: E402
from tests.sessions import call  # noqa: E402

RUNNERS = 2
MOST_RUNS_PER_SECOND = 2_000
SCRIPT = "return 'done'"
COUNT = "SELECT count(*) FROM jobs_queueentry"


class Rates(NamedTuple):
    """Queued runs a second."""

    before: float
    during: float
    after: float

    @property
    def ratio(self) -> float:
        return self.after / self.before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="part of a fault's name; default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8, help="of each phase")
    options = parser.parse_args()
    faults = {
        name: fault
        for name, fault in FAULTS.items()
        if not options.names or any(part in name for part in options.names)
    }
    measured = defaultdict(list)
    with private_postgres() as postgres, tempfile.TemporaryDirectory() as directory:
        _queue_first_run(postgres, Path(directory))
        for _ in range(options.rounds):
            for name, fault in faults.items():
                rates = _measure(postgres, Path(directory), fault, options.seconds)
                measured[name].append(rates)
                print(f"{name}: {rates.before:.0f}, {rates.during:.0f}, {rates.after:.0f} runs/s")
    print(f"\n{os.cpu_count()} cores, {RUNNERS} runners, medians of {options.rounds} rounds")
    for name, rounds in measured.items():
        before, during, after = (statistics.median(phase) for phase in zip(*rounds, strict=True))
        ratios = sorted(each.ratio for each in rounds)
        print(
            f"| {name} | {before:.0f} | {during:.0f} | {after:.0f} | "
            f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
        )


def _measure(postgres: PrivatePostgres, directory: Path, fault: Fault, seconds: float) -> Rates:
    _fill(postgres, int(5 * seconds * MOST_RUNS_PER_SECOND))
    with _runners(postgres, directory) as nodes:
        for node in nodes:
            runner_of(node)
        full = _waiting(postgres)
        while _waiting(postgres) == full:
            time.sleep(0.1)
        time.sleep(seconds / 2)
        before = _rate(postgres, seconds)
        began, left = time.monotonic(), _waiting(postgres)
        causing = Thread(target=fault, args=(postgres, nodes, seconds))
        causing.start()
        causing.join()
        during = (left - _waiting(postgres)) / (time.monotonic() - began)
        time.sleep(seconds)
        after = _rate(postgres, seconds)
    return Rates(before, during, after)


def _rate(postgres: PrivatePostgres, seconds: float) -> float:
    began, waiting = time.monotonic(), _waiting(postgres)
    time.sleep(seconds)
    left = _waiting(postgres)
    if not left:
        raise RuntimeError("the queue is empty: nothing to measure")
    return (waiting - left) / (time.monotonic() - began)


def _waiting(postgres: PrivatePostgres) -> int:
    return int(str(postgres.ask(COUNT)))


@contextmanager
def _runners(postgres: PrivatePostgres, directory: Path) -> Iterator[list[MoonhookServer]]:
    nodes = [_node(postgres, directory / str(number), "jobs") for number in range(RUNNERS)]
    with ExitStack() as running:
        for node in nodes:
            node.start()
            running.callback(node.stop)
        yield nodes


def _node(postgres: PrivatePostgres, directory: Path, service: str) -> MoonhookServer:
    return MoonhookServer(
        directory,
        service,
        "--no-demo",
        DATABASE_URL=postgres.url,
        DATABASE_POOL_SIZE="12",
        **SHARED_SECRETS,
    )


def _queue_first_run(postgres: PrivatePostgres, directory: Path) -> None:
    """Of which the others are copies, while nobody works the queue."""
    with _node(postgres, directory / "web", "web").running() as server:
        status, _, _ = call("POST", server.url + accepting_hook(server, SCRIPT))
    if status != 202:
        raise RuntimeError(f"the call was answered with {status}")
    with psycopg.connect(postgres.url) as connection:
        connection.execute("CREATE TABLE first_run AS SELECT * FROM scripts_engine_run")
        connection.execute("CREATE TABLE first_entry AS SELECT * FROM jobs_queueentry")


def _fill(postgres: PrivatePostgres, number: int) -> None:
    """Empties the queue, and fills it with copies of the first run."""
    with psycopg.connect(postgres.url) as connection:
        connection.execute("TRUNCATE jobs_queueentry, scripts_engine_run CASCADE")
        connection.execute(
            "CREATE TEMPORARY TABLE new_ids AS"
            " SELECT gen_random_uuid() AS new_id FROM generate_series(1, %s)".replace(
                "%s", str(number)
            )
        )
        for table, source, changed in (
            ("scripts_engine_run", "first_run", ["id"]),
            ("jobs_queueentry", "first_entry", ["run_id", "payload_of"]),
        ):
            rows = connection.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_name = %s ORDER BY ordinal_position",
                [source],
            )
            names = [f'"{name}"' for (name,) in rows]
            values = ["new_id" if name.strip('"') in changed else name for name in names]
            # The names come from the database's own schema.
            copy = (
                f"INSERT INTO {table} ({', '.join(names)})"
                f" SELECT {', '.join(values)} FROM new_ids, {source}"
            )
            connection.execute(copy.encode())
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


if __name__ == "__main__":
    main()
