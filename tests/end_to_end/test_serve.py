"""make run: starting, starting again, stopping, failing."""

import json
import os
import signal
import socket
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer
from tests.process_tree import command_of, family_of

PAYLOAD = b'{"items": [{"quantity": 2, "price": 4.5}]}'


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_the_demo_answers_and_a_second_start_finds_its_data(tmp_path: Path) -> None:
    first = MoonhookServer(tmp_path)
    with first.running():
        url = first.printed(r"curl (http\S+)")
        first_reply = json.load(urlopen(Request(url, PAYLOAD), timeout=30))
    second = MoonhookServer(tmp_path)
    with second.running():
        moved = url.replace(f":{first.port}/", f":{second.port}/")
        second_reply = json.load(urlopen(Request(moved, PAYLOAD), timeout=30))

    # The static files' own are everybody's, but their folder is not.
    made = list(tmp_path.iterdir())
    assert [path.name for path in made if path.stat().st_mode & 0o077] == []
    assert first_reply == second_reply == {"items": 1, "total": 9.0}
    assert "password" not in second.output
    assert f"written to {tmp_path / 'outbox'}" in first.output


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything(tmp_path: Path, signal_number: int) -> None:
    server = MoonhookServer(tmp_path)
    with server.running():
        urlopen(Request(server.printed(r"curl (http\S+)"), PAYLOAD), timeout=30)
        family = family_of(server.process.pid)
        status = server.stop(signal_number)

    assert status == 0
    assert len(family) > 4
    eventually(lambda: [pid for pid in family if is_alive(pid)] == [])


def test_killing_the_parent_leaves_nothing_behind(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path)
    with server.running():
        urlopen(Request(server.printed(r"curl (http\S+)"), PAYLOAD), timeout=30)
        family = family_of(server.process.pid)
        os.kill(server.process.pid, signal.SIGKILL)
        eventually(lambda: [pid for pid in family if is_alive(pid)] == [])


@pytest.mark.parametrize("service", ["gunicorn", "db_worker"])
def test_when_a_service_dies_everything_stops_and_says_so(tmp_path: Path, service: str) -> None:
    server = MoonhookServer(tmp_path)
    with server.running():
        family = family_of(server.process.pid)
        [victim] = [
            pid
            for pid in family
            if service in command_of(pid) and pid in direct_family_of(server.process.pid)
        ]
        os.kill(victim, signal.SIGKILL)
        status = server.process.wait(timeout=60)

    assert status == 1
    assert "ended with status -9; stopped." in server.output
    eventually(lambda: [pid for pid in family if is_alive(pid)] == [])


def direct_family_of(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def test_a_port_that_is_taken_is_a_failed_start(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path)
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
        "SECRET_KEY": "x" * 60,
        "MOONHOOK_PEPPERS": "1:" + "ab" * 32,
        "PUBLIC_URL": "https://hooks.example.com",
        "EMAIL_URL": "smtp://127.0.0.1:1",
        "SMS_URL": "off",
    }
    del environment[missing]
    server = MoonhookServer(tmp_path, **environment)
    server.start()

    assert server.process.wait(timeout=60) == 1
    eventually(lambda: f"moonhook: {missing} (or {missing}_FILE) is not set." in server.output)
    assert "Traceback" not in server.output
    assert list(tmp_path.iterdir()) == []
