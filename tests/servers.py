"""Real mail servers and SMS gateways on loopback."""

import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

# Below the ports that the system gives to outgoing connections: one of those might take the port
# of a server that is about to start, or to start again.
_PORTS = range(15_000, 32_000)


def free_port() -> int:
    """A port that nobody listens on, chosen at random: other tests run at the same time."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


class SmsGateway:
    """An HTTP gateway as ``json://`` of Apprise calls it.

    ``statuses`` are its next answers, before it takes everything; while ``hangs`` is set it keeps
    whoever asks waiting. ``asked`` counts the requests.
    """

    def __init__(self) -> None:
        self.messages: list[dict[str, str]] = []
        self.refuses = False
        self.statuses: list[int] = []
        self.hangs = threading.Event()
        self.asked = 0
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                gateway.asked += 1
                while gateway.hangs.is_set():
                    time.sleep(0.05)
                if gateway.statuses:
                    self.send_response(gateway.statuses.pop(0))
                elif gateway.refuses:
                    self.send_response(503)
                else:
                    message = json.loads(body)
                    gateway.messages.append({"to": message["to"], "text": message["message"]})
                    self.send_response(200)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True)

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self._server.server_port}/?:to={{phone}}"

    @contextmanager
    def running(self) -> Iterator["SmsGateway"]:
        self._thread.start()
        try:
            yield self
        finally:
            self.hangs.clear()
            self._server.shutdown()
            self._server.server_close()


class MailServer:
    """An SMTP server; ``messages`` are what it was given.

    ``answers`` are its next ones to messages, and ``recipient_answers`` to their recipients, before
    it takes everything; ``{message}`` in an answer quotes the message.
    """

    def __init__(self, password: str = "") -> None:
        self.messages: list[EmailMessage] = []
        self.answers: list[str] = []
        self.recipient_answers: list[str] = []
        self.port = free_port()
        self._password = password.encode()
        self._controller = Controller(
            self,
            hostname="127.0.0.1",
            port=self.port,
            authenticator=self._authenticate if password else None,
            auth_require_tls=False,
        )

    def _authenticate(
        self, server: object, session: object, envelope: object, mechanism: str, data: object
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        return AuthResult(success=data.password == self._password, handled=False)

    async def handle_RCPT(
        self, server: object, session: object, envelope: Envelope, address: str, options: object
    ) -> str:
        if self.recipient_answers:
            return self.recipient_answers.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: object, session: object, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        self.messages.append(message_from_bytes(content, policy=policy.default))
        quoted = " ".join(content.decode().split())
        return self.answers.pop(0).format(message=quoted) if self.answers else "250 OK"

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator["MailServer"]:
        self._controller.start()
        try:
            yield self
        finally:
            self._controller.stop()


class SilentServer:
    """Takes connections, and says nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    @contextmanager
    def running(self) -> Iterator["SilentServer"]:
        with self._listener:
            yield self
