"""`make bench-floods`: see benchmarks/README.md."""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.comparison import postgresql
from benchmarks.comparison.machine import described, wait_for_rest
from benchmarks.comparison.progress import say
from benchmarks.comparison.servers import DidNotStartError
from benchmarks.floods import flooding, probing, report
from benchmarks.floods.cast import Cast
from benchmarks.floods.catalogue import DESCRIPTIONS
from benchmarks.floods.figures import MOST_WORST_MS, Answer, FloodTally, Result, Summary, compare
from benchmarks.floods.node import HelperFailedError, Node, helper, slow_server

WARM_UP_SECONDS = 2.0
QUIET_TRIES = 3
# The flood has this start before what others see is measured.
LEAD_SECONDS = 1.0
RECOVERY_SECONDS = 30.0
ASK_SECONDS = 5.0
# A helper needs this to start and to end, on a busy machine too.
HELPER_SECONDS = 60.0


class NotMeasuredError(Exception):
    """Requests fail even without a flood, so the figures would be meaningless."""


@dataclass(frozen=True)
class Stage:
    """Measures floods one after the other, with a new node for each."""

    node: Node
    cast: Cast
    slow_url: str
    seconds: float
    addresses: int

    def measure(self, flood: str, number: int) -> Result:
        busy_percent = wait_for_rest()
        with self.node.running():
            if self.seconds_until_well(worst_ms=ASK_SECONDS * 1000) is None:
                raise NotMeasuredError("not every path answered before the flood")
            self.probe(WARM_UP_SECONDS)
            quiet = self.quiet()
            job = flooding.Job(
                port=self.node.port,
                seconds=LEAD_SECONDS + self.seconds,
                # The measuring client is 127.0.0.1; every flood has windows that nobody has used.
                addresses=[f"127.0.{number}.{n + 1}" for n in range(self.addresses)],
                slow_url=self.slow_url,
                cast=self.cast.as_json(),
            )
            with helper("flooding", flood, job=job.as_json()) as flooder:
                time.sleep(LEAD_SECONDS)
                flooded = self.probe(self.seconds)
                tally = FloodTally(**flooder.result(HELPER_SECONDS))
            recovered_seconds = self.seconds_until_well()
        comparisons = list(compare(quiet, flooded))
        return Result(flood, busy_percent, comparisons, tally, recovered_seconds)

    def quiet(self) -> dict[str, list[Answer]]:
        """Measures a quiet period; the first of a few that meets the goals, if one does."""
        for _ in range(QUIET_TRIES):
            quiet = self.probe(self.seconds)
            summaries = [Summary.of(answers) for answers in quiet.values()]
            if all(s.worst_ms <= MOST_WORST_MS and not s.failures for s in summaries):
                break
        return quiet

    def probe(self, seconds: float) -> dict[str, list[Answer]]:
        job = probing.Job(self.node.port, seconds, self.cast.neighbour)
        with helper("probing", job=job.as_json()) as prober:
            printed = prober.result(seconds + probing.GRACE_SECONDS + HELPER_SECONDS)
        return {name: [Answer(*answer) for answer in answers] for name, answers in printed.items()}

    def seconds_until_well(self, *, worst_ms: float = MOST_WORST_MS) -> float | None:
        """Seconds until each path has answered 2xx within the limit once, or None."""
        started = time.monotonic()
        waiting = probing.probes_of(self.cast.neighbour)
        while waiting and (left := started + RECOVERY_SECONDS - time.monotonic()) > 0:
            asked = time.monotonic()
            status = probing.ask(self.node.port, waiting[0].request, min(left, ASK_SECONDS))
            latency_ms = (time.monotonic() - asked) * 1000
            if Answer(latency_ms, status).is_success and latency_ms <= worst_ms:
                waiting.pop(0)
            else:
                time.sleep(0.1)
        return None if waiting else time.monotonic() - started


def main() -> None:
    arguments = parsed_arguments()
    with (
        tempfile.TemporaryDirectory(prefix="moonhook-floods-") as directory,
        database(arguments.database_url) as database_url,
        slow_server() as slow_url,
    ):
        node = Node(Path(directory), database_url)
        cast = node.seed(arguments.runs)
        stage = Stage(node, cast, slow_url, arguments.seconds, arguments.addresses)
        kind = "PostgreSQL" if database_url else "SQLite"
        print(f"\n## Floods, on {kind}, {arguments.runs:,} runs, {arguments.seconds:g} s each\n")
        results = list(measured(stage, arguments.floods))
    print(f"\n{report.floods_table(results)}\n\n{report.verdict(results)}")
    if arguments.json:
        document = {
            "machine": described(),
            "database": kind,
            "results": [result.as_json() for result in results],
        }
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    if left_out := [flood for flood in arguments.floods if flood not in {r.flood for r in results}]:
        sys.exit(f"Not measured: {', '.join(left_out)}")


def measured(stage: Stage, floods: Sequence[str]) -> Iterator[Result]:
    """Measures the floods and prints lines as soon as they are known."""
    print(report.beside_header(), flush=True)
    for number, flood in enumerate(floods, start=1):
        say(f"{number} of {len(floods)}: {DESCRIPTIONS[flood]}")
        try:
            result = stage.measure(flood, number)
        except (DidNotStartError, NotMeasuredError) as error:
            # The others are worth their figures all the same.
            say(f"{flood} was not measured: {error}")
            continue
        print(report.beside_lines(result), flush=True)
        yield result


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """Yields the address of an empty database; an empty string (SQLite) without a server."""
    if not server_url:
        yield ""
        return
    with postgresql.empty_database(server_url) as url:
        yield url


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.floods", description=__doc__)
    parser.add_argument(
        "floods", nargs="*", metavar="flood", help=f"{', '.join(DESCRIPTIONS)}; without any: all"
    )
    parser.add_argument("--seconds", type=float, default=10, help="of each flood, at most 60")
    parser.add_argument("--runs", type=int, default=200_000, help="that there are beforehand")
    parser.add_argument(
        "--addresses", type=int, default=8, help="source addresses of a flood, at most 250"
    )
    parser.add_argument(
        "--database-url", default="", help="a PostgreSQL server to make a database on; or SQLite"
    )
    parser.add_argument("--json", type=Path, help="a file for all figures")
    arguments = parser.parse_args()
    if unknown := set(arguments.floods) - set(DESCRIPTIONS):
        parser.error(f"there is no flood {', '.join(sorted(unknown))}")
    if not 1 <= arguments.seconds <= 60 or not 1 <= arguments.addresses <= 250:
        parser.error("seconds are 1 to 60, addresses 1 to 250")
    arguments.floods = arguments.floods or list(DESCRIPTIONS)
    return arguments


if __name__ == "__main__":
    # Both signals stop the processes first. A shell starts background jobs with SIGINT ignored.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except HelperFailedError as error:
        sys.exit(f"Not measured: {error}")
    except KeyboardInterrupt:
        sys.exit("Stopped.")
