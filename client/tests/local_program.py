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


@contextmanager
def local_program() -> Iterator[LocalProgram]:
    program = LocalProgram()

    class Handler(BaseHTTPRequestHandler):
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

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    program.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield program
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
