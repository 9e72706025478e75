"""Slow clients do not delay others.

Where one of them would, the others would wait until it is refused, which a patient server never
does: then their calls fail.
"""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.life_cycle.hooks import hook_of, run_ids
from tests.moonhook_server import MoonhookServer
from tests.sessions import ANSWER_SECONDS, call

pytestmark = pytest.mark.slow


@contextmanager
def running_server(directory: Path, *, client_timeout: int) -> Iterator[MoonhookServer]:
    """One worker with two threads."""
    server = MoonhookServer(
        directory,
        "web",
        WEB_CONCURRENCY="1",
        WEB_THREADS="2",
        SANDBOX_SLOTS="1",
        CLIENT_TIMEOUT=str(client_timeout),
    )
    with server.running():
        yield server


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    """Waits for slow clients longer than any test waits for an answer."""
    with running_server(tmp_path_factory.mktemp("data"), client_timeout=600) as server:
        yield server


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    """Refuses slow clients after three seconds."""
    with running_server(tmp_path_factory.mktemp("data"), client_timeout=3) as server:
        yield server


@pytest.fixture(scope="module")
def hook(moonhook: MoonhookServer) -> str:
    return hook_of(moonhook)


def connect(moonhook: MoonhookServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", moonhook.port), timeout=ANSWER_SECONDS)


def received_from(client: socket.socket) -> bytes:
    """All bytes until the server closes the connection."""
    return b"".join(iter(lambda: client.recv(65_536), b""))


def send_slowly(moonhook: MoonhookServer, start: bytes) -> bytes:
    """Sends the start, then a byte every tenth of a second until there is an answer."""
    with connect(moonhook) as client:
        client.sendall(start)
        client.settimeout(0.1)
        answer = b""
        for _ in range(10 * ANSWER_SECONDS):
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
    return answer


def head(hook: str, moonhook: MoonhookServer, *lines: str) -> bytes:
    path = hook.removeprefix(moonhook.url)
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", *lines, ""]).encode()


def test_bodies_and_headers_that_arrive_too_slowly_are_refused(impatient: MoonhookServer) -> None:
    hook = hook_of(impatient)
    starts = [
        head(hook, impatient, "Content-Length: 5000", ""),
        head(hook, impatient, "Content-Length: 5000", ""),
        head(hook, impatient, "Transfer-Encoding: chunked", "") + b"fff\r\n",
        head(hook, impatient) + b"X-Slow: ",
    ]
    with ThreadPoolExecutor() as executor:
        answers = list(executor.map(lambda start: send_slowly(impatient, start), starts))
        status, body, _ = call("POST", hook, b"{}")

    assert [answer.split(b"\r\n")[0] for answer in answers] == [b"HTTP/1.1 408 Request Timeout"] * 4
    assert (status, body) == (200, b"quick")
    assert len(run_ids(impatient)) == 1


PATHS = [
    "/healthz",
    "/session",
    "HOOK",
    "/hook/secure/6f5902ac-237e-4d1c-a7c0-5cd0ba2c2cf9/6f5902ac-237e-4d1c-a7c0-5cd0ba2c2cf9",
    "/user/graphql",
    "/admin/graphql",
    "/admin/login/",
]
PHASES = {
    "head": b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "body": b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\nab",
    "chunks": b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nab",
    "pipelined head": b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /hea",
}


@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES)
def test_slow_clients_on_every_path_do_not_delay_others(
    moonhook: MoonhookServer, hook: str, phase: bytes
) -> None:
    before = len(run_ids(moonhook))
    paths = [path.replace("HOOK", hook.removeprefix(moonhook.url)).encode() for path in PATHS]
    with ExitStack() as stack:
        for path in paths * 3:
            stack.enter_context(connect(moonhook)).sendall(phase % path)
        statuses = [call("GET", f"{moonhook.url}/healthz")[0] for _ in range(20)]
        status, body, _ = call("POST", hook, b"{}")

    assert statuses == [200] * 20
    assert (status, body) == (200, b"quick")
    # Ours, and those of the three that had a whole call in front of the slow one.
    assert len(run_ids(moonhook)) - before == (4 if phase.startswith(b"GET") else 1)


def test_clients_that_do_not_read_do_not_delay_others(moonhook: MoonhookServer) -> None:
    large = hook_of(moonhook, 'return ("x"):rep(1000000)', organisation="Globex")
    ask = head(large, moonhook, "Content-Length: 0", "")
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(4)]
        for client in clients:
            client.settimeout(ANSWER_SECONDS)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", moonhook.port))
            client.sendall(ask * 10)
        # Each has ten replies to come, of which the kernel keeps a few.
        begun = [client.recv(1, socket.MSG_PEEK) for client in clients]
        statuses = [call("GET", f"{moonhook.url}/healthz")[0] for _ in range(20)]

    assert begun == [b"H"] * 4
    assert statuses == [200] * 20


def test_a_slow_reader_gets_all_of_its_replies(moonhook: MoonhookServer, hook: str) -> None:
    large = hook_of(moonhook, 'return ("x"):rep(1000000)', organisation="Initech")
    ask = head(large, moonhook, "Content-Length: 0", "")
    last = head(hook, moonhook, "Content-Length: 0", "Connection: close", "")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 * 1024)
        client.settimeout(ANSWER_SECONDS)
        client.connect(("127.0.0.1", moonhook.port))
        client.sendall(ask * 9 + last)
        # The server is at work, and what it sends piles up.
        assert client.recv(1, socket.MSG_PEEK) == b"H"
        received = b""
        while part := client.recv(1_000_000):
            received += part

    assert received.count(b"HTTP/1.1 200 OK\r\n") == 10
    assert received.count(b"x" * 1_000_000) == 9
    assert received.endswith(b"quick")


def test_a_half_closed_connection_is_answered(moonhook: MoonhookServer, hook: str) -> None:
    with connect(moonhook) as client:
        client.sendall(head(hook, moonhook, "Content-Length: 2", "") + b"{}")
        client.shutdown(socket.SHUT_WR)
        answer = client.recv(4096)
    with connect(moonhook) as client:
        client.sendall(head(hook, moonhook, "Content-Length: 3", "") + b"{}")
        client.shutdown(socket.SHUT_WR)
        cut_off = received_from(client)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"malformed-body"' in cut_off


def test_a_body_after_100_continue_may_come_late(moonhook: MoonhookServer, hook: str) -> None:
    with connect(moonhook) as client:
        client.sendall(head(hook, moonhook, "Content-Length: 2", "Expect: 100-continue", ""))
        asked = client.recv(4096)
        # Others are served meanwhile.
        call("GET", f"{moonhook.url}/healthz")
        client.sendall(b"{}")
        answer = client.recv(4096)

    assert asked == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_garbage_after_a_call_is_refused(moonhook: MoonhookServer, hook: str) -> None:
    with connect(moonhook) as client:
        client.sendall(head(hook, moonhook, "Content-Length: 2", "") + b"{}" + b"\xff\x00\n" * 9)
        received = received_from(client)

    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.count(b"HTTP/1.1 400 ") == 1


def test_a_body_that_is_too_large_is_refused_before_it_arrives(
    moonhook: MoonhookServer, hook: str
) -> None:
    before = len(run_ids(moonhook))
    with connect(moonhook) as client:
        client.sendall(head(hook, moonhook, "Content-Length: 9999999", ""))
        of_hook = received_from(client)
    with connect(moonhook) as client:
        form = "Content-Type: multipart/form-data; boundary=x"
        url = f"{moonhook.url}/admin/login/"
        client.sendall(head(url, moonhook, "Content-Length: 9999999", form, "") + b"--x")
        of_form = client.recv(4096)

    assert b'"body-too-large"' in of_hook
    assert of_form.startswith((b"HTTP/1.1 413 ", b"HTTP/1.1 403 "))
    assert len(run_ids(moonhook)) == before


def test_connections_that_say_nothing_cost_no_thread(moonhook: MoonhookServer) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(moonhook)) for _ in range(20)]
        status = call("GET", f"{moonhook.url}/healthz")[0]

    assert len(silent) == 20
    assert status == 200


def test_more_silent_connections_than_there_is_room_for_are_let_go(
    moonhook: MoonhookServer,
) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(moonhook)) for _ in range(600)]
        status = call("GET", f"{moonhook.url}/healthz")[0]

    assert len(silent) == 600
    assert status == 200


def test_clients_that_keep_ended_connections_do_not_delay_others(moonhook: MoonhookServer) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with ExitStack() as stack:
        answers = []
        for _ in range(10):
            client = stack.enter_context(connect(moonhook))
            client.sendall(ask)
            answers.append(client.recv(4096))

    assert {answer.split(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 200 OK"}
