"""make run: starting, starting again, stopping, failing."""

import json
import os
import signal
import socket
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.eventually import eventually
from tests.life_cycle.processes import services_of
from tests.moonhook_server import PRODUCTION_SECRETS, MoonhookServer
from tests.process_tree import children_of, family_of, is_alive

# Starts whole servers, several times.
pytestmark = pytest.mark.slow

WITH_BROKEN_WORKERS = """
import runpy
from gunicorn.workers.gthread import ThreadWorker
ThreadWorker.init_process = None
runpy.run_path("manage.py", run_name="__main__")
"""
PAYLOAD = b'{"items": [{"quantity": 2, "price": 4.5}]}'


def test_the_demo_answers_and_a_second_start_finds_its_data(tmp_path: Path) -> None:
    first = MoonhookServer(tmp_path, is_prepared=False)
    with first.running():
        url = first.printed(r"curl (http\S+)")
        first_reply = json.load(urlopen(Request(url, PAYLOAD), timeout=30))
    second = MoonhookServer(tmp_path, is_prepared=False)
    with second.running():
        moved = url.replace(f":{first.port}/", f":{second.port}/")
        second_reply = json.load(urlopen(Request(moved, PAYLOAD), timeout=30))

    # The static files' own are everybody's, but their folder is not.
    made = list(tmp_path.iterdir())
    assert [path.name for path in made if path.stat().st_mode & 0o077] == []
    assert first_reply == second_reply == {"items": 1, "total": 9.0}
    assert "password" not in second.output
    assert f"written to {tmp_path / 'outbox'}" in first.output


@pytest.mark.parametrize(
    "signal_number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_stops_everything(tmp_path: Path, signal_number: int) -> None:
    server = MoonhookServer(tmp_path)
    with server.running():
        urlopen(Request(server.printed(r"curl (http\S+)"), PAYLOAD), timeout=30)
        family = family_of(server.process.pid)
        status = server.stop(signal_number)

    assert status == 0
    assert len(family) > 4
    eventually(lambda: [pid for pid in family if is_alive(pid)] == [])


@pytest.mark.slow
def test_killing_the_parent_leaves_no_process(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path)
    with server.running():
        urlopen(Request(server.printed(r"curl (http\S+)"), PAYLOAD), timeout=30)
        family = family_of(server.process.pid)
        os.kill(server.process.pid, signal.SIGKILL)
        eventually(lambda: [pid for pid in family if is_alive(pid)] == [])


@pytest.mark.slow
@pytest.mark.parametrize("service", ["web server", "jobs runner"])
def test_a_service_that_is_killed_is_started_again(tmp_path: Path, service: str) -> None:
    server = MoonhookServer(tmp_path)
    with server.running():
        services = children_of(server.process.pid)
        [victim] = services_of(server, service)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: victim not in children_of(server.process.pid))
        eventually(lambda: services_of(server, service))
        server.wait_until_ready()
        now = [pid for pid in children_of(server.process.pid) if is_alive(pid)]
        status = server.stop()

    assert len(set(services) & set(now)) == 1
    assert status == 0
    assert server.output.count("Service ended") == 1
    assert "ended=killed-by-sigkill" in server.output


class BrokenWorkers(MoonhookServer):
    command = ("-c", WITH_BROKEN_WORKERS, "serve")


@pytest.mark.slow
def test_a_web_server_that_cannot_start_is_a_failed_start(tmp_path: Path) -> None:
    """The application can be loaded, and its workers still do not come up."""
    server = BrokenWorkers(tmp_path)
    server.start()
    status = server.process.wait(timeout=120)

    assert status == 1
    eventually(lambda: "Service cannot start; stopping" in server.output)


@pytest.mark.slow
def test_a_start_after_the_parent_was_killed_gets_the_port(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "web", DRAIN_SECONDS="10")
    server.start()
    server.wait_until_ready()
    family = family_of(server.process.pid)
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait(timeout=30)
    with server.running():
        eventually(lambda: [pid for pid in family if is_alive(pid)] == [])


def test_a_port_that_is_taken_is_a_failed_start(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, is_prepared=False)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", server.port))
        listener.listen()
        server.start()
        status = server.process.wait(timeout=60)

    assert status == 1
    eventually(lambda: f"Cannot listen on 127.0.0.1:{server.port}" in server.output)
    assert list(tmp_path.iterdir()) == [tmp_path / "secrets.json"]


@pytest.mark.parametrize(
    "missing", ["SECRET_KEY", "MOONHOOK_PEPPERS", "PUBLIC_URL", "EMAIL_URL", "SMS_URL"]
)
def test_in_production_a_missing_secret_stops_the_start(tmp_path: Path, missing: str) -> None:
    environment = {
        "MOONHOOK_ENV": "production",
        **PRODUCTION_SECRETS,
        "PUBLIC_URL": "https://hooks.example.com",
        "EMAIL_URL": "smtp://127.0.0.1:1",
        "SMS_URL": "off",
    }
    del environment[missing]
    server = MoonhookServer(tmp_path, is_prepared=False, **environment)
    server.start()

    assert server.process.wait(timeout=60) == 1
    eventually(lambda: f"moonhook: {missing} (or {missing}_FILE) is not set." in server.output)
    assert "Traceback" not in server.output
    assert list(tmp_path.iterdir()) == []
