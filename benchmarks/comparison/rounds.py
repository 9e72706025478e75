"""Measures targets in turn."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.comparison.machine import wait_for_rest
from benchmarks.comparison.progress import say
from benchmarks.comparison.targets import Target
from benchmarks.comparison.wrk import Sample, drive

WARM_UP_SECONDS = 1


@dataclass(frozen=True)
class Load:
    """Duration, rounds and number of clients."""

    connections: Sequence[int]
    rounds: int
    seconds: float


@dataclass(frozen=True)
class Row:
    """The result of one run."""

    suite: str
    target: str
    connections: int
    round: int
    busy_percent: float
    sample: Sample

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"sample": self.sample._asdict()}


def measure(suite: str, targets: Sequence[Target], connections: int, load: Load) -> Iterator[Row]:
    """Returns the rows of each target for one number of clients.

    Each round visits all targets and starts with a different one. Responses are checked before and
    after; raises ``WrongAnswerError``.
    """
    check_all(targets)
    label = f"{suite}: {connections} connections"
    for target in targets:
        say(f"{label}, warm-up: {target.name}")
        drive(target, connections=connections, seconds=WARM_UP_SECONDS)
    for number in range(load.rounds):
        for target in rotated(targets, number):
            busy = wait_for_rest()
            sample = drive(target, connections=connections, seconds=load.seconds)
            say(
                f"{label}, round {number + 1} of {load.rounds}: {target.name}: "
                f"{sample.rps:,.0f}/s, p50 {sample.p50_ms:.2f} ms"
            )
            yield Row(suite, target.name, connections, number, busy, sample)
    check_all(targets)


def check_all(targets: Sequence[Target]) -> None:
    for target in targets:
        target.check()


def rotated(targets: Sequence[Target], start: int) -> Sequence[Target]:
    first = start % len(targets)
    return [*targets[first:], *targets[:first]]
