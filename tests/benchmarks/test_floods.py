"""The benchmark of floods: its arithmetic, what it sends, and a short run of it."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from django.conf import settings

from benchmarks.floods import probing, report
from benchmarks.floods.cast import Cast, Flooder, Neighbour, Request
from benchmarks.floods.catalogue import FLOODS
from benchmarks.floods.figures import Answer, Comparison, FloodTally, Result, Summary
from benchmarks.floods.flooding import Pace
from benchmarks.floods.probing import Probe, ask, measure
from tests.eventually import eventually
from tests.process_tree import command_of, family_of, is_alive
from tests.servers import free_port

CAST = Cast(
    Flooder(
        api_key="mhk_key",
        session="mhx_session",
        admin_cookie="moonhook_admin=cookie",
        hooks=dict.fromkeys(("waits", "loops", "takes", "gives", "counts", "logs"), "/hook/a"),
        admin_pages=["/admin/"],
        wrong_secrets=["mhs_wrong"],
        since=["2026-11-20T12:00:00Z"] * 30,
    ),
    Neighbour("mhx_other", "moonhook_admin=other", "/hook/b", "/admin/runs/"),
    ["/hook/c", "/hook/d"],
)
ANSWER_SECONDS = 0.1


@pytest.fixture
def sluggish_port() -> Iterator[int]:
    """Of a server that takes 0.1 s for each answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(ANSWER_SECONDS)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_port
        server.shutdown()


def answers(*latencies_ms: float, status: int = 200) -> list[Answer]:
    return [Answer(latency_ms, status) for latency_ms in latencies_ms]


def beside(flooded: list[Answer]) -> Comparison:
    return Comparison("hook", Summary.of(answers(4, 5, 6)), Summary.of(flooded))


def result_of(*comparisons: Comparison, recovered_seconds: float | None = 0.25) -> Result:
    tally = FloodTally(4, {"503": 39, "200": 1})
    return Result("pins", 12.4, list(comparisons), tally, recovered_seconds)


def test_a_summary_has_median_worst_and_failures() -> None:
    summary = Summary.of([*answers(1, 2, 3, 10), *answers(4, status=503), *answers(9, status=0)])

    assert (summary.requests, summary.median_ms, summary.worst_ms) == (6, 3.5, 10)
    assert summary.failures == {"503": 1, "no answer": 1}
    assert summary.failed_share == pytest.approx(1 / 3)


def test_goals_are_kept_up_to_twice_the_median_and_a_second() -> None:
    comparison = beside(answers(10, 10, 1000))

    assert comparison.median_ratio == 2
    assert comparison.missed_goals == []


def test_each_goal_is_missed_by_itself() -> None:
    assert beside(answers(10.1, 10.1, 10.1)).missed_goals == ["median"]
    assert beside(answers(5, 5, 1000.1)).missed_goals == ["worst"]
    assert beside([*answers(5, 5), *answers(1, status=503)]).missed_goals == ["not 2xx"]


def test_the_tables_show_refusals_and_a_node_that_does_not_recover() -> None:
    kept, missed = beside(answers(5)), beside(answers(1, status=503))
    result = result_of(missed, recovered_seconds=None)

    assert report.beside_lines(result).endswith("| 100 % (503: 1) | not 2xx |")
    assert "| pins | 10 | 503: 39, 200: 1 | no | 12 % |" in report.floods_table([result])
    assert report.verdict([result]) == "Goals are missed beside 1 of 1 floods: pins."
    assert report.verdict([result_of(kept)]) == "The goals hold beside all 1 floods."


def test_the_latency_of_a_late_request_counts_from_its_planned_moment(
    sluggish_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "MOST_AT_ONCE", 1)
    probe = Probe("slow", Request("GET", "/", {}), per_second=20)

    measured = list(measure(sluggish_port, probe, time.monotonic(), seconds=0.25))

    assert [answer.status for answer in measured] == [200] * 5
    # The fifth was planned for 0.2 s, and began after four answers.
    assert measured[4].latency_ms >= (5 * ANSWER_SECONDS - 0.2) * 1000 - 1


def test_requests_do_not_wait_for_those_before_them() -> None:
    together = threading.Barrier(3)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            together.wait(60)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Quiet."""

    probe = Probe("together", Request("GET", "/", {}), per_second=20)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        measured = measure(server.server_port, probe, time.monotonic(), seconds=0.15)
        server.shutdown()

    assert [answer.status for answer in measured] == [200] * 3


def test_a_request_that_is_never_sent_counts_as_not_answered(sluggish_port: int) -> None:
    probe = Probe("slow", Request("GET", "/", {}), per_second=20)

    measured = list(measure(sluggish_port, probe, time.monotonic() - 60, seconds=0.1))

    assert [answer.status for answer in measured] == [0, 0]
    assert all(answer.latency_ms >= 59_000 for answer in measured)


def test_a_port_without_server_is_no_answer() -> None:
    assert ask(free_port(), Request("GET", "/", {}), 1) == 0


def test_a_flood_does_not_make_up_for_calls_that_it_missed() -> None:
    pace = Pace(per_second=20)
    time.sleep(0.2)
    pace.wait()
    began = time.monotonic()
    pace.wait()
    pace.wait()

    assert time.monotonic() - began >= 0.09


@pytest.mark.parametrize("name", FLOODS)
def test_each_flood_has_requests_without_end_within_the_limits_of_size(name: str) -> None:
    requests = FLOODS[name].requests(CAST, "http://127.0.0.1:1/")

    for request in itertools.islice(requests, 5):
        is_admin_graphql = request.path == "/admin/graphql"
        limit = (
            settings.ADMIN_GRAPHQL_MAX_BODY_BYTES
            if is_admin_graphql
            else settings.HOOK_MAX_BODY_BYTES
        )
        assert len(request.body) <= limit


def test_the_cast_survives_the_way_between_processes() -> None:
    assert Cast.from_json(CAST.as_json()) == CAST


@pytest.mark.slow
def test_a_short_run_measures_a_real_node(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    run = start("refused-sessions", "slow-clients", "--seconds", "1", "--json", str(figures))

    output, errors = run.communicate(timeout=600)

    assert run.returncode == 0, errors
    assert "| refused-sessions | `/healthz` |" in output
    refused, slow = json.loads(figures.read_text())["results"]
    assert [probe["probe"] for probe in refused["probes"]] == [
        "`/healthz`",
        "`/readyz`",
        "`GET /session`",
        "hook",
        "admin: runs",
    ]
    assert [probe["quiet"]["requests"] for probe in refused["probes"]] == [20, 2, 20, 20, 2]
    assert refused["flood_outcomes"]["401"] > 0
    assert sum(slow["flood_outcomes"].values()) >= 60


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_benchmark_leaves_no_process(signal_number: int) -> None:
    run = start("slow-clients", "--seconds", "60")
    eventually(lambda: "manage.py serve" in commands_of(run.pid), seconds=120)
    eventually(lambda: "benchmarks.floods.probing" in commands_of(run.pid), seconds=120)
    family = family_of(run.pid)

    os.kill(run.pid, signal_number)
    _, errors = run.communicate(timeout=120)

    assert run.returncode == 1
    assert "Traceback" not in errors
    assert [command_of(pid) for pid in family if is_alive(pid)] == []


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.floods", "--runs", "200", *arguments],
        cwd=settings.BASE_DIR,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def commands_of(pid: int) -> str:
    return "\n".join(command_of(member) for member in family_of(pid))
