"""`python -m benchmarks.floods.flooding NAME`: the flooding client, in its own process.

Reads a job from standard input; prints its tally as JSON at the end.
"""

import http.client
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from benchmarks.floods import slow_clients
from benchmarks.floods.cast import Cast, Request
from benchmarks.floods.catalogue import FLOODS, SLOW_CLIENTS, Flood
from benchmarks.floods.figures import FloodTally

ANSWER_SECONDS = 30


@dataclass(frozen=True)
class Job:
    port: int
    seconds: float
    addresses: list[str]
    """Source addresses, on loopback, that the calls come from in turn."""
    slow_url: str
    cast: str

    def as_json(self) -> str:
        return json.dumps(asdict(self))


class Pace:
    """Planned moments, ``per_second`` at most. Missed moments are not made up for."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second
        self._next = time.monotonic()
        self._lock = threading.Lock()

    def wait(self) -> None:
        with self._lock:
            moment = self._next = max(self._next + self._interval, time.monotonic())
        time.sleep(max(0, moment - time.monotonic()))


class Callers:
    """Threads that call until the deadline, each time on a new connection."""

    def __init__(self, job: Job, flood: Flood) -> None:
        self._job = job
        self._flood = flood
        self._deadline = time.monotonic() + job.seconds
        self._requests: Iterator[Request] = flood.requests(Cast.from_json(job.cast), job.slow_url)
        self._pace = Pace(flood.per_second)
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._unanswered = 0

    def run(self) -> Counter[str]:
        """Returns the number of calls by outcome, including those still waiting."""
        for number in range(self._flood.connections):
            threading.Thread(target=self._call_on, args=(number,), daemon=True).start()
        time.sleep(max(0, self._deadline - time.monotonic()))
        with self._lock:
            return self._outcomes + Counter({"unanswered at the end": self._unanswered})

    def _call_on(self, number: int) -> None:
        address = self._job.addresses[number % len(self._job.addresses)]
        while True:
            self._pace.wait()
            if time.monotonic() >= self._deadline:
                return
            with self._lock:
                request = next(self._requests)
                self._unanswered += 1
            outcome = self._outcome_of(request, address)
            with self._lock:
                self._unanswered -= 1
                self._outcomes[outcome] += 1

    def _outcome_of(self, request: Request, address: str) -> str:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._job.port, timeout=ANSWER_SECONDS, source_address=(address, 0)
        )
        try:
            connection.request(request.method, request.path, request.body, request.headers)
            response = connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException) as error:
            return type(error).__name__
        finally:
            connection.close()
        is_told_when = response.status not in {429, 503} or "Retry-After" in response.headers
        return f"{response.status}" if is_told_when else f"{response.status} without Retry-After"


def main() -> None:
    name = sys.argv[1]
    job = Job(**json.load(sys.stdin))
    started = time.monotonic()
    if name == SLOW_CLIENTS:
        cast = Cast.from_json(job.cast)
        outcomes = slow_clients.flood(job.port, cast, job.seconds, job.addresses)
    else:
        outcomes = Callers(job, FLOODS[name]).run()
    tally = FloodTally(time.monotonic() - started, dict(outcomes))
    print(json.dumps(asdict(tally)), flush=True)
    # The client goes away with its connections, as one does: nothing is waited for.
    os._exit(0)


if __name__ == "__main__":
    main()
