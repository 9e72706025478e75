"""The same behind the server that runs in production, over a real socket."""

import http.client
import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.core.http.body_echo import MAX_BYTES, fingerprint

Address = tuple[str, int]
STARTED = re.compile(r"Listening at: http://127\.0\.0\.1:(\d+)")
EVERY_BYTE = bytes(range(256))


@pytest.fixture(scope="module")
def server() -> Iterator[Address]:
    """gunicorn on a free port, ended by its process id."""
    process = subprocess.Popen(
        [
            sys.executable,
            *("-m", "gunicorn", "--bind", "127.0.0.1:0", "--worker-class", "gthread"),
            *("--no-control-socket", "tests.core.http.body_echo:application"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        match = next(filter(None, map(STARTED.search, process.stderr)))
        yield ("127.0.0.1", int(match[1]))
    finally:
        process.terminate()
        process.communicate(timeout=30)


def send(server: Address, **request: object) -> str:
    connection = http.client.HTTPConnection(*server, timeout=10)
    connection.request("POST", "/", **request)  # type: ignore[arg-type]
    answer = connection.getresponse().read().decode()
    connection.close()
    return answer


def send_raw(server: Address, head: str, body: bytes) -> bytes:
    """Sends exactly this and no more, then reads until the server closes."""
    with socket.create_connection(server, timeout=10) as connection:
        connection.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def test_a_body_with_a_length(server: Address) -> None:
    assert send(server, body=EVERY_BYTE) == fingerprint(EVERY_BYTE)


def test_a_chunked_body(server: Address) -> None:
    parts = [EVERY_BYTE, b"middle", EVERY_BYTE * 100]

    answer = send(server, body=iter(parts), encode_chunked=True)

    assert answer == fingerprint(b"".join(parts))


def test_no_body(server: Address) -> None:
    assert send(server) == fingerprint(b"")


@pytest.mark.parametrize("size", [MAX_BYTES - 1, MAX_BYTES])
def test_a_chunked_body_up_to_the_limit(server: Address, size: int) -> None:
    assert send(server, body=iter([b"x" * size]), encode_chunked=True) == fingerprint(b"x" * size)


def test_a_chunked_body_over_the_limit(server: Address) -> None:
    body = iter([b"x" * (MAX_BYTES + 1)])

    assert send(server, body=body, encode_chunked=True) == "BodyTooLarge"


def test_a_body_over_the_limit(server: Address) -> None:
    assert send(server, body=b"x" * (MAX_BYTES + 1)) == "BodyTooLarge"


def test_a_client_that_leaves_before_its_body_is_sent(server: Address) -> None:
    assert send_raw(server, "Content-Length: 10", b"half").endswith(b"BodyIncomplete")


@pytest.mark.parametrize("body", [b"4\r\nbo", b"4\r\nbody\r\n", b"zz\r\nbody\r\n0\r\n\r\n"])
def test_malformed_chunks(server: Address, body: bytes) -> None:
    assert send_raw(server, "Transfer-Encoding: chunked", body).endswith(b"BodyIncomplete")
