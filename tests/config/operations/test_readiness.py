"""What /readyz says of a database that is gone, and when it says it."""

import json
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.test import Client

from config.operations.readiness import Readiness
from core import node_state
from core.database.readiness import DatabaseCheck, NotReady
from core.waiting import Bounded
from tests.database_connections import opened_connections
from tests.eventually import eventually
from tests.moonhook_server import WebServer
from tests.servers import free_port
from tests.sessions import call

# The system has no stack of that size, and so no thread.
MORE_THAN_ANY_ADDRESS_SPACE = 1 << 46


def readyz(server: WebServer) -> tuple[int, dict[str, Any]]:
    status, content, _ = call("GET", f"{server.url}/readyz")
    return status, json.loads(content)


def postgres_at(port: int) -> str:
    return f"postgres://moonhook:a-password@127.0.0.1:{port}/moonhook"


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Accepts connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def no_more_threads() -> Iterator[None]:
    before = threading.stack_size(MORE_THAN_ANY_ADDRESS_SPACE)
    yield
    threading.stack_size(before)


@pytest.mark.slow
def test_a_database_that_refuses_is_named_so(tmp_path: Path) -> None:
    server = WebServer(
        tmp_path, DATABASE_URL=postgres_at(free_port()), LOG_FORMAT="json", WEB_CONCURRENCY="1"
    )
    with server.running():
        first, second = readyz(server), readyz(server)

    assert (first[0], second[0]) == (503, 503)
    assert first[1]["checks"]["database"] == "failed"
    assert first[1]["reasons"]["database"] == second[1]["reasons"]["database"] == "refused"
    assert server.output.count('"check": "database", "reason": "refused"') == 1
    assert "a-password" not in server.output


@pytest.mark.slow
def test_a_database_that_never_responds_does_not_delay_others(
    tmp_path: Path, silent_port: int
) -> None:
    server = WebServer(tmp_path, DATABASE_URL=postgres_at(silent_port))
    with server.running():
        status, document = readyz(server)
        living, _, _ = call("GET", f"{server.url}/healthz")

    assert (status, document["reasons"]["database"]) == (503, "timeout")
    assert living == 200


@pytest.mark.slow
def test_a_database_without_its_migrations_is_not_ready(tmp_path: Path) -> None:
    server = WebServer(tmp_path, WEB_CONCURRENCY="1")
    with server.running():
        before = readyz(server)
        server.manage("migrate")
        eventually(lambda: readyz(server)[0] == 200)
        after = readyz(server)

    assert (before[0], before[1]["reasons"]["database"]) == (503, "migrations-missing")
    assert after == (
        200,
        {"status": "ok", "checks": {"database": "ok", "sandbox": "ok", "queue": "ok"}},
    )


@pytest.mark.django_db(transaction=True)
def test_the_check_of_the_database_closes_each_connection_that_it_opens() -> None:
    with opened_connections() as opened:
        Bounded(DatabaseCheck(), seconds=60)()

    assert opened
    assert opened.still_open == []


def test_a_process_that_is_about_to_stop_is_not_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_state, "_draining", bytearray(1))
    node_state.start_draining()
    response = client.get("/readyz")

    assert (response.status_code, response.json()) == (503, {"status": "draining"})
    assert client.get("/healthz").status_code == 200


def test_without_another_thread_a_process_is_not_ready_and_says_so(
    client: Client, no_more_threads: None
) -> None:
    response = client.get("/readyz")

    assert response.status_code == 503
    assert response.json() == {
        "status": "unavailable",
        "checks": {"database": "failed", "sandbox": "failed"},
        "reasons": {"database": "no-threads", "sandbox": "no-threads"},
    }


def test_checks_run_in_parallel_and_a_hanging_one_runs_only_once() -> None:
    asked = []
    may_end = Event()

    def hang() -> None:
        asked.append("hang")
        may_end.wait(60)

    readiness = Readiness({"one": hang, "other": hang}, seconds=0.2)
    reasons = readiness.reasons()
    again = readiness.reasons()
    # None has ended yet.
    asked_at_once = len(asked)
    may_end.set()

    assert reasons == again == {"one": "timeout", "other": "timeout"}
    assert asked_at_once == 2


def test_only_changes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    failures = iter([NotReady("refused"), NotReady("refused"), None, None, NotReady("locked")])

    def check() -> None:
        if failure := next(failures):
            raise failure

    readiness = Readiness({"database": check}, seconds=5)
    with caplog.at_level(logging.INFO):
        reasons = [readiness.reasons()["database"] for _ in range(5)]

    assert reasons == ["refused", "refused", None, None, "locked"]
    logged = [(record.msg["event"], record.msg.get("reason")) for record in caplog.records]
    assert logged == [("Not ready", "refused"), ("Ready again", None), ("Not ready", "locked")]
