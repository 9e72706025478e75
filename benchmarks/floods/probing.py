"""`python -m benchmarks.floods.probing`: the measuring client, in its own process.

Sends each request of a path at its planned moment on a new connection, independently of those
before it. If ``MOST_AT_ONCE`` requests of the path are waiting, the next one is sent later, but its
latency still counts from the planned moment.
Reads a job from standard input; prints responses by path as JSON.
"""

import http.client
import json
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

from benchmarks.comparison.order import ORDER
from benchmarks.floods.cast import Neighbour, Request
from benchmarks.floods.figures import NO_ANSWER, Answer

ANSWER_SECONDS = 10.0
# After the last moment that was planned for: what is not sent by then counts as not answered.
GRACE_SECONDS = 5.0
# Of one path. The flooded server holds far more connections than these.
MOST_AT_ONCE = 64


@dataclass(frozen=True)
class Job:
    port: int
    seconds: float
    neighbour: Neighbour

    def as_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Probe:
    name: str
    request: Request
    per_second: int


def probes_of(neighbour: Neighbour) -> list[Probe]:
    """The probes. The admin page is requested less often: it costs as much as ten of the others."""
    bearer = {"Authorization": f"Bearer {neighbour.session}"}
    cookie = {"Cookie": neighbour.admin_cookie}
    return [
        Probe("`/healthz`", Request("GET", "/healthz", {}), 20),
        # What a balancer asks before it takes a node out.
        Probe("`/readyz`", Request("GET", "/readyz", {}), 2),
        Probe("`GET /session`", Request("GET", "/session", bearer), 20),
        Probe("hook", Request.posting_json(neighbour.hook, ORDER), 20),
        Probe("admin: runs", Request("GET", neighbour.runs_page, cookie), 2),
    ]


def ask(port: int, request: Request, timeout_seconds: float) -> int:
    """The status, or ``NO_ANSWER``; the timeout applies to each step of the exchange."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_seconds)
    try:
        connection.request(request.method, request.path, request.body, request.headers)
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        return NO_ANSWER
    finally:
        connection.close()
    return response.status


def measure(port: int, probe: Probe, started: float, seconds: float) -> Sequence[Answer]:
    end = started + seconds + GRACE_SECONDS

    def answer_to(planned: float) -> Answer:
        left = end - time.monotonic()
        # One that is never sent was waited for until the end.
        status = ask(port, probe.request, min(left, ANSWER_SECONDS)) if left > 0 else NO_ANSWER
        return Answer((time.monotonic() - planned) * 1000, status)

    answers = []
    with ThreadPoolExecutor(MOST_AT_ONCE) as callers:
        for number in range(round(seconds * probe.per_second)):
            planned = started + number / probe.per_second
            time.sleep(max(0, planned - time.monotonic()))
            answers.append(callers.submit(answer_to, planned))
    return [each.result() for each in answers]


def main() -> None:
    fields = json.load(sys.stdin)
    job = Job(fields["port"], fields["seconds"], Neighbour(**fields["neighbour"]))
    answers: dict[str, Sequence[Answer]] = {}
    started = time.monotonic()

    def collect(probe: Probe) -> None:
        answers[probe.name] = measure(job.port, probe, started, job.seconds)

    probes = probes_of(job.neighbour)
    threads = [threading.Thread(target=collect, args=(probe,)) for probe in probes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({probe.name: answers[probe.name] for probe in probes}))


if __name__ == "__main__":
    main()
