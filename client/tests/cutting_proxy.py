"""A proxy between the client and the server that can lose a request, or its answer."""

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from local_program import QuietHandler, serving


def _pass_on(request: bytes) -> None:
    """What happens by default: nothing."""


@dataclass
class CuttingProxy:
    """``before`` and ``after`` get each request's body. The connection ends where one raises."""

    url: str = ""
    before: Callable[[bytes], None] = _pass_on
    after: Callable[[bytes], None] = _pass_on


class Cut(Exception):
    """Ends the connection without an answer."""


@contextmanager
def cutting_proxy(server_url: str) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy()
    address = urlsplit(server_url).netloc

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with suppress(Cut, OSError, http.client.HTTPException):
                proxy.before(body)
                status, headers, answer = self.forward(body)
                proxy.after(body)
                self.send_response(status)
                for name in ("Content-Type", "Retry-After"):
                    if name in headers:
                        self.send_header(name, headers[name])
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                return
            self.close_connection = True

        def do_PUT(self) -> None:
            self.do_POST()

        def do_GET(self) -> None:
            self.do_POST()

        def forward(self, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
            connection = http.client.HTTPConnection(address, timeout=60)
            try:
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                response = connection.getresponse()
                return response.status, response.headers, response.read()
            finally:
                connection.close()

    with serving(Handler) as proxy.url:
        yield proxy
