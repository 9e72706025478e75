"""One of our web workers with a WSGI application of the tests."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.eventually import eventually
from tests.servers import free_port


class WsgiServer:
    """A running server; ``output`` collects what it logs."""

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.port = port
        self.process = process
        self._lines: list[str] = []

    def read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            self._lines += lines

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def is_ready(self) -> bool:
        try:
            return b"HTTP/1.1 200 " in self.answers("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        except ConnectionError:
            return False

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def answers(self, *requests: str) -> bytes:
        """All that the server sends until it closes the connection."""
        with self.connect() as client:
            client.sendall("".join(requests).encode())
            return b"".join(iter(lambda: client.recv(65_536), b""))


@contextmanager
def wsgi_server(application: str, data_dir: Path) -> Iterator[WsgiServer]:
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.web_server", application),
        ],
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "MOONHOOK_DATA_DIR": str(data_dir),
            "PORT": str(port),
            "WEB_CONCURRENCY": "1",
        },
        cwd=Path(__file__).parents[3],
        stderr=subprocess.PIPE,
        text=True,
    )
    server = WsgiServer(port, process)
    reader = threading.Thread(target=server.read)
    reader.start()
    try:
        eventually(server.is_ready, seconds=60)
        yield server
    finally:
        process.terminate()
        process.wait(30)
        reader.join(30)
