"""Clients that hold connections, at one byte a second in each phase of request and response."""

import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator

from benchmarks.floods.cast import Cast

CLIENTS = 60
BYTE_SECONDS = 1.0
CONNECT_SECONDS = 5


def flood(port: int, cast: Cast, seconds: float, addresses: list[str]) -> Counter[str]:
    """Counts connections by their end: a status, `closed`, an error, `held to the end`."""
    deadline = time.monotonic() + seconds
    outcomes: Counter[str] = Counter()
    lock = threading.Lock()
    openings = _openings(port, cast)

    def hold_on(number: int) -> None:
        address = addresses[number % len(addresses)]
        while time.monotonic() < deadline:
            with lock:
                opening = next(openings)
            outcome = _hold(port, address, *opening, deadline)
            with lock:
                outcomes[outcome] += 1
            # Where nothing can be connected to, not in a busy loop.
            time.sleep(0.05)

    threads = [threading.Thread(target=hold_on, args=(n,), daemon=True) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, deadline + CONNECT_SECONDS - time.monotonic()))
    with lock:
        return Counter(outcomes)


def _openings(port: int, cast: Cast) -> Iterator[tuple[bytes, bytes]]:
    """The bytes sent at once, and the pieces sent once a second; no pieces for a slow reader."""
    hooks = cast.flooder.hooks
    paths = itertools.cycle(["/session", "/user/graphql", "/admin/graphql", hooks["takes"]])
    bearer = f"Authorization: Bearer {cast.flooder.session}"
    for path in paths:
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{bearer}\r\n"
        typed = f"{head}Content-Type: application/json\r\n"
        yield f"{head}X-Slow: ".encode(), b"a"
        yield f"{typed}Content-Length: 1000\r\n\r\n".encode(), b" "
        yield f"{typed}Transfer-Encoding: chunked\r\n\r\n".encode(), b"1\r\n \r\n"
        reading = f"POST {hooks['gives']} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        yield f"{reading}Content-Length: 0\r\n\r\n".encode(), b""


def _hold(port: int, address: str, at_once: bytes, piece: bytes, deadline: float) -> str:
    try:
        with socket.socket() as connection:
            # Before it connects: this is what it tells the server that it takes.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            connection.settimeout(CONNECT_SECONDS)
            connection.bind((address, 0))
            connection.connect(("127.0.0.1", port))
            connection.sendall(at_once)
            connection.settimeout(BYTE_SECONDS)
            return (
                _send_slowly(connection, piece, deadline)
                if piece
                else _read_slowly(connection, deadline)
            )
    except OSError as error:
        return type(error).__name__


def _send_slowly(connection: socket.socket, piece: bytes, deadline: float) -> str:
    while time.monotonic() < deadline:
        try:
            answer = connection.recv(100)
        except TimeoutError:
            connection.sendall(piece)
        else:
            return answer[9:12].decode(errors="replace") if answer else "closed"
    return "held to the end"


def _read_slowly(connection: socket.socket, deadline: float) -> str:
    while time.monotonic() < deadline:
        try:
            if not connection.recv(1):
                return "closed"
        except TimeoutError:
            continue
        time.sleep(BYTE_SECONDS)
    return "held to the end"
