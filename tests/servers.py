"""Real servers on loopback, for what Moonhook talks to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class SmsGateway:
    """An HTTP gateway as ``json://`` of Apprise calls it."""

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []
        self.refuses = False
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if gateway.refuses:
                    self.send_response(503)
                else:
                    message = json.loads(body)
                    gateway.messages.append({"to": message["to"], "text": message["message"]})
                    self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self._server.server_port}/?:to={{phone}}"

    @contextmanager
    def running(self) -> Iterator["SmsGateway"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
