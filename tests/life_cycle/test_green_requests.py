"""A web worker serves hook calls and GET /session in its main thread, which nothing blocks."""

import http.client
import json
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.eventually import eventually
from tests.held_server import HeldServer
from tests.node import Node, new_hook
from tests.process_tree import children_of, command_of, family_of
from tests.sessions import ANSWER_SECONDS, call, graphql, machine_token

pytestmark = pytest.mark.slow

GREEN_THREADS = 6
JSON = {"Content-Type": "application/json"}
ECHO = 'return params.get("body")'


class Cast(NamedTuple):
    acme: str
    globex: str
    quick: str
    """Of Globex, like the next."""
    echo: str


@contextmanager
def running_node(directory: Path, **environment: str) -> Iterator[Node]:
    server = Node(
        directory,
        WEB_THREADS=str(GREEN_THREADS),
        HTTP_ALLOWED_NETWORKS="127.0.0.1/32",
        DATABASE_URL=f"sqlite:///{directory}/moonhook.sqlite3",
        DATABASE_TIMEOUT="60",
        **environment,
    )
    server.manage("migrate", "-v0")
    with server.running():
        yield server


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with running_node(Path(tmp_path_factory.mktemp("node"))) as server:
        yield server


@pytest.fixture(scope="module")
def cast(node: Node) -> Cast:
    acme, globex = machine_token(node, "Acme"), machine_token(node, "Globex")
    quick = new_hook(node, globex, 'return "quick"')[1]
    return Cast(acme, globex, quick, new_hook(node, globex, ECHO)[1])


@pytest.fixture
def database(node: Node) -> Iterator[sqlite3.Connection]:
    path = node.environment["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as executor:
        yield executor


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def statuses_of_the_rest(node: Node, cast: Cast) -> list[int]:
    """Of /healthz, GET /session and a hook of another organisation."""
    return [
        call("GET", f"{node.url}/healthz")[0],
        call("GET", f"{node.url}/session", None, bearer(cast.globex))[0],
        call("POST", f"{node.url}{cast.quick}")[0],
    ]


def count_runs(node: Node, token: str) -> int:
    count = "{ runs { totalCount } }"
    return int(graphql(f"{node.url}/admin/graphql", count, token)["runs"]["totalCount"])


def status_of(future: "Future[Any]") -> int:
    return int(future.result(timeout=ANSWER_SECONDS)[0])


def call_until_a_slot_is_free(url: str) -> Any:
    """Calls again where it was refused as busy, which a slow machine may be for any caller."""
    answers: list[Any] = []

    def is_served() -> bool:
        answers.append(call("POST", url, b"x"))
        status, body, _ = answers[-1]
        return status != 503 or json.loads(body)["code"] != "busy"

    eventually(is_served)
    return answers[-1]


def connect(node: Node) -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.port), timeout=ANSWER_SECONDS)


def request_of(path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def bodies_in(client: socket.socket, count: int) -> list[bytes]:
    """The bodies of so many replies on one connection."""
    with client.makefile("rb") as stream:
        return [read_reply(stream) for _ in range(count)]


def read_reply(stream: Any) -> bytes:
    assert stream.readline().startswith(b"HTTP/1.1 200 ")
    headers = http.client.parse_headers(stream)
    return bytes(stream.read(int(headers["Content-Length"])))


def main_process(node: Node) -> int:
    """The only web worker."""
    [worker] = children_of(node.process.pid)
    return worker


def fork_server_and_children(node: Node) -> list[int]:
    family = family_of(main_process(node))
    return [pid for pid in family if "scripts_engine.sandbox.child.fork_server" in command_of(pid)]


# --- One organisation is slow ------------------------------------------------------------------


def test_endless_loops_of_one_organisation_delay_nobody_else(
    node: Node, cast: Cast, executor: ThreadPoolExecutor
) -> None:
    with HeldServer().running() as held:
        _, endless = new_hook(node, cast.acme, held.telling("while true do end"))
        loops = [executor.submit(call, "POST", f"{node.url}{endless}") for _ in range(2)]
        held.wait_until_begun(2)
        rest = [statuses_of_the_rest(node, cast) for _ in range(5)]
        were_running = [not each.done() for each in loops]

    assert rest == [[200, 200, 200]] * 5
    assert were_running == [True, True]
    assert {json.loads(each.result()[1])["code"] for each in loops} == {"script-timed-out"}


def test_host_calls_of_one_organisation_delay_nobody_else(
    node: Node, cast: Cast, executor: ThreadPoolExecutor
) -> None:
    with HeldServer().running() as held:
        _, asks = new_hook(node, cast.acme, held.script("late"))
        calls = [executor.submit(call, "POST", f"{node.url}{asks}") for _ in range(2)]
        held.wait_until_begun(2)
        rest = [statuses_of_the_rest(node, cast) for _ in range(5)]
        were_running = [not each.done() for each in calls]
        held.may_go_on.set()
        answers = [each.result()[:2] for each in calls]

    assert rest == [[200, 200, 200]] * 5
    assert were_running == [True, True]
    assert answers == [(200, b"late")] * 2


# --- Connections -------------------------------------------------------------------------------


def test_one_connection_alternates_between_green_threads_and_others(node: Node, cast: Cast) -> None:
    large = b"x" * 1024 * 1024
    query = b'{"query": "{ organisation { name } }"}'
    requests: list[tuple[str, str, bytes | None, dict[str, str]]] = [
        ("POST", cast.echo, b"small", {}),
        ("POST", "/admin/graphql", query, bearer(cast.globex) | JSON),
        ("GET", "/session", None, bearer(cast.globex)),
        ("POST", cast.echo, large, {}),
        ("GET", "/healthz", None, {}),
    ]
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=ANSWER_SECONDS)
    with closing(connection):
        connection.connect()
        ours = connection.sock.getsockname()
        answers = [ask(connection, *request) for request in requests * 4]
        still_ours = connection.sock.getsockname()

    assert [status for status, _ in answers] == [200] * 20
    assert [body for _, body in answers[::5]] == [b"small"] * 4
    assert [body for _, body in answers[3::5]] == [large] * 4
    assert still_ours == ours


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: dict[str, str],
) -> tuple[int, bytes]:
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    return response.status, response.read()


def test_pipelined_requests_are_answered_in_order(node: Node, cast: Cast) -> None:
    bodies = [f"call {number}".encode() for number in range(30)]
    with connect(node) as client:
        client.sendall(b"".join(request_of(cast.echo, body) for body in bodies))
        answers = bodies_in(client, 30)

    assert answers == bodies


def test_pipelined_requests_of_both_kinds_are_answered_in_order(node: Node, cast: Cast) -> None:
    large = b"y" * 300_000
    alive = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    one_round = request_of(cast.echo, b"a") + alive + request_of(cast.echo, large)
    with connect(node) as client, ThreadPoolExecutor(1) as executor:
        sent = executor.submit(client.sendall, one_round * 5)
        answers = bodies_in(client, 15)
        sent.result()

    assert answers[::3] == [b"a"] * 5
    assert answers[2::3] == [large] * 5


def test_clients_that_keep_sending_do_not_keep_the_green_threads(
    node: Node, cast: Cast, executor: ThreadPoolExecutor
) -> None:
    calls = request_of(cast.echo, b"x") * 200
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(node)) for _ in range(GREEN_THREADS)]
        sent = [executor.submit(client.sendall, calls) for client in clients]
        for client in clients:
            assert client.recv(1, socket.MSG_PEEK) == b"H"
        answers = [executor.submit(bodies_in, client, 200) for client in clients]
        status = call("POST", f"{node.url}{cast.quick}")[0]
        were_busy = [not each.done() for each in answers]
        received = [len(each.result()) for each in answers]

    assert status == 200
    assert were_busy == [True] * GREEN_THREADS
    assert received == [200] * GREEN_THREADS
    assert all(each.done() for each in sent)


def test_a_request_in_pieces_behind_another_is_answered(node: Node, cast: Cast) -> None:
    """The second request arrives while the first is served."""
    with connect(node) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = [in_two_pieces(client, cast, pause) for pause in range(200)]

    assert answers == [[b"first", b"second"]] * 200


def in_two_pieces(client: socket.socket, cast: Cast, pause: int) -> list[bytes]:
    second = request_of(cast.echo, b"second")
    client.sendall(request_of(cast.echo, b"first") + second[:-3])
    # Of every length, so that the second arrives at every point of serving the first.
    time.sleep(pause / 50_000)
    client.sendall(second[-3:])
    return bodies_in(client, 2)


def test_a_client_is_told_to_continue(node: Node, cast: Cast) -> None:
    with connect(node) as client:
        client.sendall(request_of(cast.echo, b"", "Expect: 100-continue").replace(b": 0", b": 4"))
        told = client.recv(100)
        client.sendall(b"body")
        answers = bodies_in(client, 1)
        client.sendall(request_of(cast.echo, b"next"))
        answers += bodies_in(client, 1)

    assert told == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answers == [b"body", b"next"]


def test_a_run_whose_client_disconnects_is_recorded(node: Node, cast: Cast) -> None:
    before = count_runs(node, cast.acme)
    with HeldServer().running() as held:
        _, slow = new_hook(node, cast.acme, held.script("slow"))
        with connect(node) as client:
            client.sendall(request_of(slow))
            held.wait_until_begun()
        rest = statuses_of_the_rest(node, cast)

    assert rest == [200, 200, 200]
    eventually(lambda: count_runs(node, cast.acme) == before + 1)
    assert "Traceback" not in node.output


def test_more_connections_than_green_threads_are_all_served(
    node: Node, cast: Cast, executor: ThreadPoolExecutor
) -> None:
    clients = [connect(node) for _ in range(5 * GREEN_THREADS)]
    answers = [each.result() for each in [executor.submit(thrice, node, c, cast) for c in clients]]

    assert answers == [[b"1", b"2", b"3"]] * (5 * GREEN_THREADS)


def thrice(node: Node, client: socket.socket, cast: Cast) -> list[bytes]:
    with client:
        return [body for text in (b"1", b"2", b"3") for body in echoed(client, cast, text)]


def echoed(client: socket.socket, cast: Cast, text: bytes) -> list[bytes]:
    client.sendall(request_of(cast.echo, text))
    return bodies_in(client, 1)


# --- The database is locked --------------------------------------------------------------------


def test_calls_wait_for_a_lock_of_another_process_and_nobody_else_does(
    node: Node, cast: Cast, database: sqlite3.Connection, executor: ThreadPoolExecutor
) -> None:
    before = count_runs(node, cast.globex)
    database.execute("BEGIN IMMEDIATE")
    calls = [executor.submit(call, "POST", f"{node.url}{cast.quick}") for _ in range(12)]
    alive = [call("GET", f"{node.url}/healthz")[0] for _ in range(10)]
    # Until the writers no longer queue, when all of them try.
    time.sleep(2)
    alive += [call("GET", f"{node.url}/healthz")[0] for _ in range(10)]
    were_waiting = [not each.done() for each in calls]
    database.execute("COMMIT")

    assert alive == [200] * 20
    assert were_waiting == [True] * 12
    assert [each.result()[0] for each in calls] == [200] * 12
    assert count_runs(node, cast.globex) == before + 12


# --- Sandboxes are killed ----------------------------------------------------------------------


def test_a_run_whose_sandbox_is_killed_fails_and_no_other(
    node: Node, cast: Cast, executor: ThreadPoolExecutor
) -> None:
    call("POST", f"{node.url}{cast.quick}")
    others = set(fork_server_and_children(node))
    with HeldServer().running() as held:
        # The sandbox that checks the new script is the one that will run it.
        _, slow = new_hook(node, machine_token(node, "Initech"), held.script("slow"))
        [child] = set(fork_server_and_children(node)) - others
        running = executor.submit(call, "POST", f"{node.url}{slow}")
        held.wait_until_begun()
        os.kill(child, signal.SIGKILL)
        held.may_go_on.set()
        status, body, _ = running.result()

    assert (status, json.loads(body)["code"]) == (500, "script-failed")
    assert statuses_of_the_rest(node, cast) == [200, 200, 200]


def test_a_killed_fork_server_is_replaced_while_others_are_served(
    node: Node, cast: Cast, executor: ThreadPoolExecutor
) -> None:
    with HeldServer().running() as held:
        _, slow = new_hook(node, cast.acme, held.script("slow"))
        running = executor.submit(call, "POST", f"{node.url}{slow}")
        held.wait_until_begun()
        os.kill(fork_server_and_children(node)[0], signal.SIGKILL)
        # Its sandboxes end with it.
        status, _, _ = running.result()
    alive = call("GET", f"{node.url}/healthz")[0]
    eventually(lambda: call("POST", f"{node.url}{cast.quick}")[0] == 200)

    assert alive == 200
    assert status >= 500
    assert statuses_of_the_rest(node, cast) == [200, 200, 200]


# --- The end of a worker -----------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGABRT])
def test_a_worker_that_gets_a_signal_is_replaced(
    tmp_path: Path, executor: ThreadPoolExecutor, number: int
) -> None:
    with running_node(tmp_path) as node, HeldServer().running() as held:
        token = machine_token(node)
        slow, quick = (
            new_hook(node, token, source)[1] for source in (held.script("slow"), "return 1")
        )
        first = main_process(node)
        running = executor.submit(call, "POST", f"{node.url}{slow}")
        held.wait_until_begun()
        os.kill(first, number)
        held.may_go_on.set()
        eventually(lambda: first not in children_of(node.process.pid))
        answer = running.exception() or running.result()[:2]
        eventually(lambda: call("POST", f"{node.url}{quick}")[0] == 200)

    assert number != signal.SIGTERM or answer == (200, b"slow")
    assert "Traceback" not in node.output


def test_a_worker_is_replaced_after_its_requests_and_loses_none(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    with running_node(tmp_path, WEB_MAX_REQUESTS="50") as node:
        token = machine_token(node)
        echo = new_hook(node, token, ECHO)[1]
        first = main_process(node)
        calls = [
            executor.submit(call_until_a_slot_is_free, f"{node.url}{echo}") for _ in range(200)
        ]
        statuses = [status_of(each) for each in calls]
        eventually(lambda: first not in children_of(node.process.pid))

        assert statuses == [200] * 200
        assert count_runs(node, token) == 200
