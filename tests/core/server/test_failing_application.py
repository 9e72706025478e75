"""Replies and log lines of an application that fails, with both request parsers."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.servers import free_port

# The second has a field that only gunicorn's parser reads.
HEADS = ["Host: 127.0.0.1\r\n", "Host: 127.0.0.1\r\nX_A: 1\r\n"]


class Server:
    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.port = port
        self.process = process
        self.lines: list[str] = []

    def read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            self.lines += lines

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def is_ready(self) -> bool:
        try:
            return b"0123456789" in self.answers(request("/", "Connection: close\r\n"))
        except ConnectionError:
            return False

    def answers(self, *requests: str) -> bytes:
        """All that the server sends until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as client:
            client.sendall("".join(requests).encode())
            return b"".join(iter(lambda: client.recv(65_536), b""))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "core.server", "-c", "config/gunicorn.conf.py"),
            *("--workers", "1", "tests.core.server.failing:application"),
        ],
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "MOONHOOK_DATA_DIR": str(tmp_path_factory.mktemp("data")),
            "PORT": str(port),
        },
        cwd=Path(__file__).parents[3],
        stderr=subprocess.PIPE,
        text=True,
    )
    server = Server(port, process)
    reader = threading.Thread(target=server.read)
    reader.start()
    try:
        eventually(server.is_ready, seconds=60)
        yield server
    finally:
        process.terminate()
        process.wait(30)
        reader.join(30)


def request(path: str, head: str) -> str:
    return f"GET {path} HTTP/1.1\r\n{head}\r\n"


@pytest.mark.parametrize("head", HEADS)
def test_the_server_works(server: Server, head: str) -> None:
    last = request("/", f"{head}Connection: close\r\n")

    assert server.answers(request("/", head), last).count(b"0123456789") == 2


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("when", ["at-once", "before-the-body"])
def test_a_failure_before_the_reply_is_an_error_page(server: Server, when: str, head: str) -> None:
    before = server.output.count("ValueError: on purpose")
    reply = server.answers(request(f"/{when}/value", head))

    assert reply.startswith(b"HTTP/1.1 500 ")
    assert b"on purpose" not in reply
    eventually(lambda: server.output.count("ValueError: on purpose") > before)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("error", ["value", "file"])
def test_a_failure_in_the_reply_cuts_it_off(server: Server, error: str, head: str) -> None:
    before = server.output.count("Error: ")
    reply = server.answers(request(f"/in-the-body/{error}", head))

    assert reply.count(b"HTTP/1.1") == 1
    assert reply.endswith(b"\r\n\r\n01234")
    eventually(lambda: server.output.count("Error: ") > before)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("when", ["at-once", "before-the-body"])
def test_an_error_of_the_system_is_not_taken_for_a_client_that_left(
    server: Server, when: str, head: str
) -> None:
    before = server.output.count("OSError: [Errno 5] on purpose")
    reply = server.answers(request(f"/{when}/file", head))

    assert reply == b""
    eventually(lambda: server.output.count("OSError: [Errno 5] on purpose") > before)
