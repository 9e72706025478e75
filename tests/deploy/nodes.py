"""Nodes behind a proxy."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.life_cycle.refusals import Refusal
from tests.moonhook_server import MoonhookServer
from tests.sessions import call

HOST = "hooks.example.com"


@contextmanager
def two_nodes(data: Path, **sizes: str) -> Iterator[list[MoonhookServer]]:
    """With one data directory, as production has them."""
    environment = {
        "PUBLIC_URL": f"https://{HOST}",
        "ALLOWED_HOSTS": f"{HOST},127.0.0.1",
        "TRUSTED_PROXY_COUNT": "1",
        "DRAIN_SECONDS": "2",
        **sizes,
    }
    first = MoonhookServer(data, "web", **environment)
    second = MoonhookServer(data, "web", "--no-migrate", **environment)
    with first.running(), second.running():
        yield [first, second]


def statuses_of(refusal: Refusal, proxy_url: str, host: str) -> list[int]:
    """Of the refusal through a proxy, with an unread body of known length, and a chunked one."""
    headers = {"Host": refusal.host or host, "Content-Type": refusal.content_type}
    body = b"x" * 100_000
    url = f"{proxy_url}{refusal.path}"
    return [call(refusal.method, url, each, headers)[0] for each in (body, iter([body]))]


class BrittleNode:
    """A server that answers every path but ``/break``, at which it ends the connection."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                if self.path == "/break":
                    self.close_connection = True
                    return
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_port

    @contextmanager
    def running(self) -> Iterator["BrittleNode"]:
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
