"""gunicorn's response with cheaper header checks, and with head and body in one packet."""

import re
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from gunicorn.http.wsgi import Response
from gunicorn.util import hop_headers, http_date

# RFC 9110, sections 5.1 and 5.5: names are tokens, and values have no control characters.
_TOKENS = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]*")
_VALUES = re.compile(r"[\t -~\x80-\xff]*")


class HttpReply(Response):
    """Sends the head with the first piece of the body: each packet costs the client a wake-up."""

    req: Any
    sock: Any
    headers: list[tuple[str, str]]
    headers_sent: bool
    response_length: int | None
    is_whole = False

    def process_headers(self, headers: Iterable[tuple[str, str]]) -> None:
        headers = list(headers)
        # An application that failed may call start_response again, with exc_info (PEP 3333).
        self.response_length = None
        names = [name.lower() for name, _ in headers]
        values = [value for _, value in headers]
        # Not of ``names``: the Kelvin sign's lower case is a plain k.
        are_tokens = "" not in names and _TOKENS.fullmatch("".join(name for name, _ in headers))
        are_plain = are_tokens and hop_headers.isdisjoint(names)
        if not are_plain or not _VALUES.fullmatch("".join(values)):
            # gunicorn drops hop-by-hop headers, and raises for invalid ones.
            self.headers = []
            super().process_headers(headers)
            return
        self.headers = headers
        if "content-length" in names:
            self.response_length = int(values[names.index("content-length")])

    def send_headers(self) -> None:
        """Sends nothing yet."""

    def close(self) -> None:
        if not self.headers_sent:
            self._send(b"")
        if self.chunked:
            self._send(b"0\r\n\r\n")
        self.is_whole = True

    def _emit_body(self, data: bytes) -> None:
        self._send(b"%X\r\n%b\r\n" % (len(data), data) if self.chunked else data)

    def _send(self, data: bytes) -> None:
        if not self.headers_sent:
            data = self._head() + data
            self.headers_sent = True
        self.sock.sendall(data)

    def _head(self) -> bytes:
        major, minor = self.req.version
        connection = "close" if self.should_close() else "keep-alive"
        start = (
            f"HTTP/{major}.{minor} {self.status}\r\nServer: {self.version}\r\n"
            f"Date: {_date(int(time.time()))}\r\nConnection: {connection}\r\n"
        )
        coding = "Transfer-Encoding: chunked\r\n" if self.chunked else ""
        return f"{start}{coding}{_lines(self.headers)}\r\n".encode("latin-1")


def _lines(headers: list[tuple[str, str]]) -> str:
    text = "\r\n".join(map(": ".join, headers))
    return f"{text}\r\n" if text else ""


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    text: str = http_date(second)
    return text
