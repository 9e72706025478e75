"""Summarises responses and compares them with the goals."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

MOST_MEDIAN_RATIO = 2.0
MOST_WORST_MS = 1000.0
# Of a request without an HTTP answer: refused, reset, timed out or never sent.
NO_ANSWER = 0


class Answer(NamedTuple):
    """A response to the probe; ``latency_ms`` counts from the planned moment of the request."""

    latency_ms: float
    status: int

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Summary:
    """All responses on one path in one period, successes and failures."""

    requests: int
    median_ms: float
    worst_ms: float
    failures: dict[str, int]
    """Requests by what came instead of a 2xx: a status, or `no answer`."""

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> "Summary":
        latencies = [answer.latency_ms for answer in answers]
        failures = Counter(_name(answer.status) for answer in answers if not answer.is_success)
        return cls(len(answers), median(latencies), max(latencies), dict(failures))

    @property
    def failed_share(self) -> float:
        return sum(self.failures.values()) / self.requests


def _name(status: int) -> str:
    return "no answer" if status == NO_ANSWER else str(status)


@dataclass(frozen=True)
class Comparison:
    """One path during one flood."""

    probe: str
    quiet: Summary
    flooded: Summary

    @property
    def median_ratio(self) -> float:
        return self.flooded.median_ms / self.quiet.median_ms

    @property
    def missed_goals(self) -> list[str]:
        """The missed goals of `median`, `worst` and `not 2xx`."""
        missed = {
            "median": self.median_ratio > MOST_MEDIAN_RATIO,
            "worst": self.flooded.worst_ms > MOST_WORST_MS,
            "not 2xx": bool(self.flooded.failures),
        }
        return [goal for goal, is_missed in missed.items() if is_missed]


@dataclass(frozen=True)
class FloodTally:
    """The responses to the flood itself."""

    seconds: float
    outcomes: dict[str, int]
    """Calls by status or by error."""

    @property
    def per_second(self) -> float:
        return sum(self.outcomes.values()) / self.seconds


@dataclass(frozen=True)
class Result:
    """The result of a flood. ``recovered_seconds`` is None if the node did not recover in time."""

    flood: str
    busy_percent: float
    comparisons: list[Comparison]
    tally: FloodTally
    recovered_seconds: float | None

    def as_json(self) -> dict[str, Any]:
        return {
            "flood": self.flood,
            "busy_percent_before": self.busy_percent,
            "recovered_seconds": self.recovered_seconds,
            "flood_per_second": self.tally.per_second,
            "flood_outcomes": self.tally.outcomes,
            "probes": [
                {
                    "probe": each.probe,
                    "quiet": vars(each.quiet),
                    "flooded": vars(each.flooded),
                    "median_ratio": each.median_ratio,
                    "missed_goals": each.missed_goals,
                }
                for each in self.comparisons
            ],
        }


def compare(
    quiet: dict[str, list[Answer]], flooded: dict[str, list[Answer]]
) -> Iterable[Comparison]:
    for probe, answers in quiet.items():
        yield Comparison(probe, Summary.of(answers), Summary.of(flooded[probe]))
