"""Scripts that run until the test lets them go on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Below the five seconds that a script's HTTP call may take.
_ANSWER_SECONDS = 4
GO_ON = b"go on"


class HeldServer:
    """An HTTP server that scripts ask whether they may go on.

    ``begun`` is released once by each run of such a script; ``may_go_on`` lets all of them end.
    Nodes need ``HTTP_ALLOWED_NETWORKS=127.0.0.1/32``, and each script a timeout of its own.
    """

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.may_go_on = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = b"wait"
                if self.path == "/begun":
                    server.begun.release()
                elif server.may_go_on.wait(_ANSWER_SECONDS):
                    body = GO_ON
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def telling(self, source: str) -> str:
        """Lua that tells that it has begun, and goes on with the source."""
        return f'http.get("{self.url}/begun")\n{source}'

    def before(self, source: str) -> str:
        """Lua that tells that it has begun, and goes on with the source once it may."""
        wait = f'while http.get("{self.url}/wait").body ~= "{GO_ON.decode()}" do end'
        return self.telling(f"{wait}\n{source}")

    def script(self, reply: str) -> str:
        """Lua that tells that it has begun, and replies once it may go on."""
        return self.before(f'return "{reply}"')

    def wait_until_begun(self, runs: int = 1) -> None:
        for _ in range(runs):
            assert self.begun.acquire(timeout=120), "the run has not begun"

    @contextmanager
    def running(self) -> Iterator["HeldServer"]:
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()
        try:
            yield self
        finally:
            self.may_go_on.set()
            self._server.shutdown()
            self._server.server_close()
