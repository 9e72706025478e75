"""Replies and log lines of an application that fails."""

from collections.abc import Iterator

import pytest

from tests.core.server.wsgi_server import WsgiServer, wsgi_server
from tests.eventually import eventually

# The second has a field that is dropped.
HEADS = ["Host: 127.0.0.1\r\n", "Host: 127.0.0.1\r\nX_A: 1\r\n"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WsgiServer]:
    directory = tmp_path_factory.mktemp("data")
    with wsgi_server("tests.core.server.failing:application", directory) as server:
        yield server


def request(path: str, head: str) -> str:
    return f"GET {path} HTTP/1.1\r\n{head}\r\n"


@pytest.mark.parametrize("head", HEADS)
def test_the_server_works(server: WsgiServer, head: str) -> None:
    last = request("/", f"{head}Connection: close\r\n")

    assert server.answers(request("/", head), last).count(b"0123456789") == 2


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("when", ["at-once", "before-the-body"])
def test_a_failure_before_the_reply_is_an_error_page(
    server: WsgiServer, when: str, head: str
) -> None:
    before = server.output.count("ValueError: on purpose")
    reply = server.answers(request(f"/{when}/value", head))

    assert reply.startswith(b"HTTP/1.1 500 ")
    assert b"on purpose" not in reply
    eventually(lambda: server.output.count("ValueError: on purpose") > before)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("error", ["value", "file"])
def test_a_failure_in_the_reply_cuts_it_off(server: WsgiServer, error: str, head: str) -> None:
    before = server.output.count("Error: ")
    reply = server.answers(request(f"/in-the-body/{error}", head))

    assert reply.count(b"HTTP/1.1") == 1
    assert reply.endswith(b"\r\n\r\n01234")
    eventually(lambda: server.output.count("Error: ") > before)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("error", ["value", "file"])
def test_a_failure_after_the_reply_does_not_end_the_connection(
    server: WsgiServer, error: str, head: str
) -> None:
    before = server.output.count("Error: ")
    last = request("/", f"{head}Connection: close\r\n")

    assert server.answers(request(f"/after-the-body/{error}", head), last).count(b"56789") == 2
    eventually(lambda: server.output.count("Error: ") > before)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("when", ["at-once", "before-the-body"])
def test_an_error_of_the_system_is_not_taken_for_a_client_that_left(
    server: WsgiServer, when: str, head: str
) -> None:
    before = server.output.count("OSError: [Errno 5] on purpose")
    reply = server.answers(request(f"/{when}/file", head))

    assert reply == b""
    eventually(lambda: server.output.count("OSError: [Errno 5] on purpose") > before)
