"""Requests and their expected responses."""

import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

JSON_TYPES = ("application/json", "application/graphql-response+json")
ANSWER_SECONDS = 30


class WrongAnswerError(Exception):
    """A response is wrong, so the figures would be meaningless."""


@dataclass(frozen=True)
class Request:
    """An HTTP request to a server on loopback."""

    url: str
    method: str = "GET"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def posting(cls, url: str, document: object, **headers: str) -> Self:
        """A POST request with a JSON document."""
        body = json.dumps(document, separators=(",", ":")).encode()
        return cls(url, "POST", body, {"Content-Type": "application/json"} | headers)

    @property
    def path(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def on_the_wire(self) -> bytes:
        """The request in HTTP/1.1."""
        headers = {"Host": urlsplit(self.url).netloc, **self.headers}
        if self.body:
            headers["Content-Length"] = str(len(self.body))
        lines = [f"{self.method} {self.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode() + self.body

    def send(self) -> tuple[int, str, bytes]:
        """Sends on a new connection; returns status, content type and body."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=ANSWER_SECONDS)
        try:
            connection.request(self.method, self.path, self.body or None, dict(self.headers))
            response = connection.getresponse()
            return response.status, response.headers.get_content_type(), response.read()
        finally:
            connection.close()

    def require(self, status: int, is_right: Callable[[Any], bool]) -> None:
        """Raises ``WrongAnswerError`` unless the response has the status and the right JSON."""
        answer = self.send()
        got_status, content_type, body = answer
        if got_status != status or content_type not in JSON_TYPES or not is_right(json.loads(body)):
            raise WrongAnswerError(f"{self.method} {self.url}: {answer}")

    def require_refusal(self) -> None:
        """Raises ``WrongAnswerError`` if the request succeeds."""
        status, _, body = self.send()
        if 200 <= status < 300:
            raise WrongAnswerError(f"{self.method} {self.url} was not refused: {status} {body!r}")
