"""Web workers are replaced, stopped and killed; nobody who calls notices."""

import http.client
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.life_cycle.hooks import hook_of, run_ids
from tests.life_cycle.load import Load
from tests.life_cycle.processes import open_files, wait_for_replacement, web_workers
from tests.moonhook_server import MoonhookServer
from tests.sessions import call
from tests.size import sized

pytestmark = pytest.mark.slow

KEPT_CONNECTIONS = 40


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    server = MoonhookServer(Path(tmp_path_factory.mktemp("data")), "web", WEB_CONCURRENCY="2")
    with server.running():
        yield server


@pytest.fixture(scope="module")
def hook(moonhook: MoonhookServer) -> str:
    return hook_of(moonhook)


def workers_after_a_request_to_replace(moonhook: MoonhookServer) -> int:
    os.kill(moonhook.process.pid, signal.SIGHUP)
    time.sleep(0.2)
    return len(web_workers(moonhook))


def test_all_workers_are_replaced_under_load(moonhook: MoonhookServer, hook: str) -> None:
    old = web_workers(moonhook)
    before = set(run_ids(moonhook))
    with Load(hook).running() as load:
        os.kill(moonhook.process.pid, signal.SIGHUP)
        wait_for_replacement(moonhook, old, count=2)
        called_before = len(load.runs)
        eventually(lambda: len(load.runs) > called_before + 20)

    assert load.failures == []
    assert load.statuses == {200}
    assert set(run_ids(moonhook)) - before == set(load.runs)


def test_repeated_requests_to_replace_workers_do_not_add_up(moonhook: MoonhookServer) -> None:
    old = web_workers(moonhook)
    crowds = [workers_after_a_request_to_replace(moonhook) for _ in range(20)]
    wait_for_replacement(moonhook, old, count=2)

    # Each request to replace two workers, heeded at once, would make 40.
    assert max(crowds) < 20


def test_a_worker_is_terminated_under_load(moonhook: MoonhookServer, hook: str) -> None:
    victim = min(web_workers(moonhook))
    before = set(run_ids(moonhook))
    with Load(hook).running() as load:
        os.kill(victim, signal.SIGTERM)
        wait_for_replacement(moonhook, {victim}, count=2)
        called_before = len(load.runs)
        eventually(lambda: len(load.runs) > called_before + 20)

    assert load.failures == []
    assert load.statuses == {200}
    assert set(run_ids(moonhook)) - before == set(load.runs)


def test_connections_queued_at_a_killed_worker_are_served_by_another(
    moonhook: MoonhookServer, hook: str
) -> None:
    victim = min(web_workers(moonhook))
    # It takes none and does not die yet: who comes now waits at its socket.
    os.kill(victim, signal.SIGSTOP)
    while_it_hangs = [call("POST", hook)[0] for _ in range(20)]
    os.kill(victim, signal.SIGKILL)
    after = [call("POST", hook)[0] for _ in range(20)]
    wait_for_replacement(moonhook, {victim}, count=2)

    assert while_it_hangs == after == [200] * 20


def test_kept_connections_are_spread_among_the_workers(moonhook: MoonhookServer) -> None:
    workers = web_workers(moonhook)
    before = {pid: open_files(pid) for pid in workers}
    with ExitStack() as stack:
        for _ in range(KEPT_CONNECTIONS):
            connection = http.client.HTTPConnection("127.0.0.1", moonhook.port, timeout=30)
            stack.enter_context(closing(connection))
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        held = [open_files(pid) - before[pid] for pid in workers]

    assert sum(held) >= KEPT_CONNECTIONS * 3 // 4
    assert min(held) >= KEPT_CONNECTIONS // 8


def test_workers_are_replaced_after_the_configured_number_of_requests(tmp_path: Path) -> None:
    server = MoonhookServer(
        tmp_path, "web", WEB_CONCURRENCY="1", WEB_MAX_REQUESTS=sized(small="300", full="2000")
    )
    with server.running():
        hook = hook_of(server)
        first = web_workers(server)
        with Load(hook).running() as load:
            wait_for_replacement(server, first, count=1)
            called_before = len(load.runs)
            eventually(lambda: len(load.runs) > called_before + 20)
        recorded = set(run_ids(server))

    assert load.failures == []
    assert load.statuses == {200}
    assert recorded == set(load.runs)
