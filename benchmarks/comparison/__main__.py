"""`make bench`: see benchmarks/README.md."""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.comparison import postgresql, report, wrk
from benchmarks.comparison.machine import described
from benchmarks.comparison.memory import Memory, memory_of_server
from benchmarks.comparison.progress import say
from benchmarks.comparison.requests import WrongAnswerError
from benchmarks.comparison.rounds import Load, Row, check_all, measure
from benchmarks.comparison.servers import DidNotStartError
from benchmarks.comparison.setting import Setting, checkout
from benchmarks.comparison.suites.api import api_calls
from benchmarks.comparison.suites.growth import growth
from benchmarks.comparison.suites.hook import hook_calls
from benchmarks.comparison.suites.session import session_look_ups
from benchmarks.comparison.suites.tenants import tenants
from benchmarks.comparison.targets import Target

LOCAL_POSTGRESQL = "postgres://postgres@127.0.0.1/postgres"


class Suite(NamedTuple):
    targets: Callable[[Setting], AbstractContextManager[list[Target]]]
    connections: tuple[int, ...]
    is_default: bool = True


SUITES = {
    "hook": Suite(hook_calls, (1, 8, 32)),
    "session": Suite(session_look_ups, (1, 32)),
    "api": Suite(api_calls, (8,)),
    "tenants": Suite(tenants, (8,)),
    "growth": Suite(growth, (1, 8), is_default=False),
}


def main() -> None:
    arguments = parsed_arguments()
    if not wrk.is_installed():
        sys.exit("The benchmarks need wrk.")
    rows: list[Row] = []
    memory: dict[str, dict[str, dict[str, Memory]]] = {}
    with ExitStack() as until_the_end:
        made = tempfile.TemporaryDirectory(prefix="moonhook-bench-")
        directory = Path(until_the_end.enter_context(made))
        earlier = None
        if arguments.earlier:
            earlier = until_the_end.enter_context(checkout(arguments.earlier, directory))
        setting = Setting(
            directory,
            usable_postgresql(),
            arguments.tenants,
            tuple(arguments.rows),
            earlier,
        )
        for name in arguments.suites:
            suite = SUITES[name]
            connections = arguments.connections or suite.connections
            load = Load(connections, arguments.rounds, arguments.seconds)
            with suite.targets(setting) as targets:
                of_suite, memory[name] = measured(name, targets, load)
            rows += of_suite
            if arguments.output:
                arguments.output.write_text(as_json(rows, memory))


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison", description=__doc__)
    by_default = [name for name, suite in SUITES.items() if suite.is_default]
    parser.add_argument(
        "suites",
        nargs="*",
        default=by_default,
        metavar="suite",
        help=f"{', '.join(SUITES)}; without any: {', '.join(by_default)}",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2, help="of each run")
    parser.add_argument("--connections", type=int, nargs="+", help="instead of each suite's own")
    parser.add_argument("--tenants", type=int, default=200, help="organisations called in turn")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1_000, 1_000_000], help="of each kind, for growth"
    )
    parser.add_argument(
        "--earlier",
        metavar="revision",
        help="a commit whose version is measured too, in hook, session and tenants",
    )
    parser.add_argument("--output", type=Path, help="a file for every run's figures, as JSON")
    arguments = parser.parse_args()
    if unknown := set(arguments.suites) - set(SUITES):
        parser.error(f"there is no suite {', '.join(sorted(unknown))}")
    return arguments


def usable_postgresql() -> str:
    """The address of a server that allows creating databases, or an empty string."""
    url = os.environ.get("DATABASE_URL", LOCAL_POSTGRESQL)
    if url.startswith("postgres") and postgresql.is_reachable(url):
        return url
    say("PostgreSQL is left out: DATABASE_URL names no server that answers")
    return ""


def measured(
    name: str, targets: Sequence[Target], load: Load
) -> tuple[list[Row], dict[str, dict[str, Memory]]]:
    """Measures the targets and prints each table as soon as it is complete."""
    check_all(targets)
    idle = memory_of(targets)
    rows: list[Row] = []
    for connections in load.connections:
        of_connections = list(measure(name, targets, connections, load))
        rows += of_connections
        print(f"\n## {name}: {connections} connections\n")
        print(f"Medians of {load.rounds} runs of {load.seconds} s each.", end=" ")
        print(f"Ratio: req/s to those of: {report.bases(targets)}.\n")
        print(report.rate_table(targets, of_connections), flush=True)
    after = memory_of(targets)
    print(f"\n{report.busy_line(rows)}\n")
    print(f"Memory, MiB:\n\n{report.memory_table(idle, after)}", flush=True)
    return rows, {"idle": idle, "after": after}


def memory_of(targets: Sequence[Target]) -> dict[str, Memory]:
    servers = {target.server.pid: target.server for target in targets}
    return {
        kind: sizes
        for server in servers.values()
        for kind, sizes in memory_of_server(server).items()
    }


def as_json(rows: Sequence[Row], memory: dict[str, dict[str, dict[str, Memory]]]) -> str:
    sizes = {
        suite: {
            when: {kind: size._asdict() for kind, size in kinds.items()}
            for when, kinds in moments.items()
        }
        for suite, moments in memory.items()
    }
    document = {
        "machine": described(),
        "runs": [row.as_json() for row in rows],
        "memory_mib": sizes,
    }
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    # Asked to end, it stops its servers first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        main()
    except (DidNotStartError, WrongAnswerError) as error:
        sys.exit(f"Not measured: {error}")
