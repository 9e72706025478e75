"""A program on loopback that keeps the requests that it gets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class LocalProgram:
    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    received: "Queue[Received]" = field(default_factory=Queue)

    def next(self) -> Received:
        return self.received.get(timeout=60)


class QuietHandler(BaseHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def serving(handler: type[QuietHandler]) -> Iterator[str]:
    """The address at which the handler serves."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def local_program() -> Iterator[LocalProgram]:
    program = LocalProgram()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(program.status)
            for name, value in program.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"noted")
            program.received.put(Received(self.command, self.path, headers, body))

        def do_PUT(self) -> None:
            self.do_POST()

    with serving(Handler) as program.url:
        yield program
