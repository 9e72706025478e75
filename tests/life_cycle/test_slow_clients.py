"""Clients that take their time take nobody else's."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.life_cycle.hooks import hook_of, run_ids
from tests.moonhook_server import MoonhookServer
from tests.sessions import call

pytestmark = pytest.mark.slow

CLIENT_TIMEOUT_SECONDS = 3


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    """One worker with two threads."""
    server = MoonhookServer(
        Path(tmp_path_factory.mktemp("data")),
        "web",
        WEB_CONCURRENCY="1",
        WEB_THREADS="2",
        SANDBOX_SLOTS="1",
        CLIENT_TIMEOUT=str(CLIENT_TIMEOUT_SECONDS),
    )
    with server.running():
        yield server


@pytest.fixture(scope="module")
def hook(moonhook: MoonhookServer) -> str:
    return hook_of(moonhook)


def connect(moonhook: MoonhookServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", moonhook.port), timeout=30)


def send_slowly(moonhook: MoonhookServer, start: bytes) -> tuple[bytes, float]:
    """Sends the start, then a byte every tenth of a second; the answer, and after how long."""
    began = time.monotonic()
    with connect(moonhook) as client:
        client.sendall(start)
        client.settimeout(0.1)
        answer = b""
        while time.monotonic() - began < 30:
            try:
                part = client.recv(4096)
            except TimeoutError:
                client.sendall(b"a")
                continue
            except OSError:
                break
            if not part:
                break
            answer += part
    return answer, time.monotonic() - began


def head(hook: str, moonhook: MoonhookServer, *lines: str) -> bytes:
    path = hook.removeprefix(moonhook.url)
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lines, ""]).encode()


def test_a_body_that_trickles_in_is_given_up(moonhook: MoonhookServer, hook: str) -> None:
    start = head(hook, moonhook, "Content-Length: 5000", "")
    with ThreadPoolExecutor() as executor:
        answers = list(executor.map(lambda _: send_slowly(moonhook, start), range(2)))
        status, body, _ = call("POST", hook, b"{}")

    assert [answer.split(b"\r\n")[0] for answer, _ in answers] == [
        b"HTTP/1.1 408 Request Timeout"
    ] * 2
    assert min(seconds for _, seconds in answers) > CLIENT_TIMEOUT_SECONDS - 0.5
    assert (status, body) == (200, b"quick")
    assert len(run_ids(moonhook)) == 1


def test_a_chunked_body_that_trickles_in_is_given_up(moonhook: MoonhookServer, hook: str) -> None:
    start = head(hook, moonhook, "Transfer-Encoding: chunked", "") + b"fff\r\n"
    answer, _ = send_slowly(moonhook, start)

    assert answer.startswith(b"HTTP/1.1 408 ")


def test_headers_that_trickle_in_are_given_up(moonhook: MoonhookServer, hook: str) -> None:
    answer, seconds = send_slowly(moonhook, head(hook, moonhook) + b"X-Slow: ")

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert seconds < 25


def test_connections_that_say_nothing_cost_no_thread(moonhook: MoonhookServer) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(moonhook)) for _ in range(20)]
        began = time.monotonic()
        status = call("GET", f"{moonhook.url}/healthz")[0]
        seconds = time.monotonic() - began

    assert len(silent) == 20
    assert status == 200
    assert seconds < 2


def test_more_silent_connections_than_there_is_room_for_are_let_go(
    moonhook: MoonhookServer,
) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(moonhook)) for _ in range(600)]
        began = time.monotonic()
        status = call("GET", f"{moonhook.url}/healthz")[0]
        seconds = time.monotonic() - began

    assert len(silent) == 600
    assert status == 200
    assert seconds < 25


def test_clients_that_keep_what_has_ended_hold_nobody_up(moonhook: MoonhookServer) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with ExitStack() as stack:
        answers = []
        began = time.monotonic()
        for _ in range(10):
            client = stack.enter_context(connect(moonhook))
            client.sendall(ask)
            answers.append(client.recv(4096))
        seconds = time.monotonic() - began

    assert {answer.split(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 200 OK"}
    assert seconds < 10
