"""A stopping node reports that it is draining, finishes its requests, and exits."""

import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.held_server import HeldServer
from tests.life_cycle.hooks import hook_of, run_ids
from tests.life_cycle.load import Load
from tests.moonhook_server import MoonhookServer
from tests.process_tree import family_of, send
from tests.sessions import ANSWER_SECONDS, call

pytestmark = pytest.mark.slow


def test_a_script_that_runs_is_answered_and_recorded(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "web", HTTP_ALLOWED_NETWORKS="127.0.0.1/32")
    with server.running(), HeldServer().running() as held, ThreadPoolExecutor() as executor:
        slow_call = executor.submit(call, "POST", hook_of(server, held.script("slow")))
        held.wait_until_begun()
        stopped = executor.submit(server.stop)
        eventually(lambda: is_refusing(server))
        held.may_go_on.set()
        exit_status = stopped.result()
        status, body, headers = slow_call.result()

    assert (status, body) == (200, b"slow")
    assert exit_status == 0
    assert run_ids(server) == [headers["Moonhook-Run-Id"]]


def is_refusing(server: MoonhookServer) -> bool:
    """Whether new connections are refused: the node is stopping."""
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=ANSWER_SECONDS).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_draining_node_is_not_ready_but_serves_on(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "web", DRAIN_SECONDS="600")
    with server.running():
        hook = hook_of(server)
        ready_before = call("GET", f"{server.url}/readyz")[0]
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: call("GET", f"{server.url}/readyz")[0] == 503)
        readiness = call("GET", f"{server.url}/readyz")
        liveness = call("GET", f"{server.url}/healthz")
        hook_call = call("POST", hook)
        send(signal.SIGKILL, family_of(server.process.pid))

    assert ready_before == 200
    assert readiness[:2] == (503, b'{"status": "draining"}')
    assert liveness[0] == 200
    assert hook_call[:2] == (200, b"quick")
    assert hook_call[2]["Connection"] == "close"
    assert run_ids(server) == [hook_call[2]["Moonhook-Run-Id"]]


def test_accepted_connections_are_answered_before_the_end(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "web", DRAIN_SECONDS="1")
    with server.running():
        load = Load(hook_of(server))
        with load.running(callers=8):
            eventually(lambda: len(load.runs) > 20)
            server.process.send_signal(signal.SIGTERM)
            exit_status = server.process.wait(ANSWER_SECONDS)

    refused = [each for each in load.failures if each.startswith("ConnectionRefused")]
    assert exit_status == 0
    assert load.failures == refused
    assert load.statuses == {200}
    assert set(run_ids(server)) == set(load.runs)


def test_slow_clients_of_a_stopping_node_are_served_to_the_end(tmp_path: Path) -> None:
    server = MoonhookServer(tmp_path, "web", WEB_CONCURRENCY="1")
    with server.running(), ThreadPoolExecutor() as executor:
        path = hook_of(server, 'return ("x"):rep(1000000)').removeprefix(server.url)
        call_of_two_bytes = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n"
        address = ("127.0.0.1", server.port)
        with (
            socket.create_connection(address, timeout=ANSWER_SECONDS) as sender,
            socket.socket() as reader,
        ):
            sender.sendall(call_of_two_bytes.encode() + b"{")
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.settimeout(ANSWER_SECONDS)
            reader.connect(address)
            reader.sendall(call_of_two_bytes.encode() + b"{}")
            first = reader.recv(1)
            stopped = executor.submit(server.stop)
            eventually(lambda: is_refusing(server))
            was_running = not stopped.done()
            sender.sendall(b"}")
            answers = [_all_of(sender), first + _all_of(reader)]
        exit_status = stopped.result()

    assert was_running
    for answer in answers:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert body == b"x" * 1_000_000
    assert exit_status == 0
    assert len(run_ids(server)) == 2


def _all_of(client: socket.socket) -> bytes:
    received = bytearray()
    while part := client.recv(65_536):
        received += part
    return bytes(received)
