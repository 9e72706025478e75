"""A call of a hook, as the web server passes it on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self
from urllib.parse import quote

from django.conf import settings
from django.core.handlers.wsgi import get_path_info
from django.http.request import HttpHeaders
from django.utils.functional import cached_property

from core.http.body import BodyIncomplete, BodyTooLarge, read_body_of
from core.http.client_address import client_address_of
from core.http.problems import Problem, ProblemCode
from core.http.request_id import new_request_id
from scripts_engine.flows.run_spec import RunSpec


@dataclass
class Request:
    """A request of which nothing is parsed before it is asked for."""

    environ: dict[str, Any]
    method: str
    path: str
    """Decoded, with bytes that are not UTF-8 still percent-encoded."""
    request_id: str
    spec: RunSpec | None = None
    """What the call runs; set when its token has matched."""
    body: bytes | None = None
    """Set when it has been read."""
    after_reply: list[Callable[[], None]] = field(default_factory=list)
    """Called when the reply has been sent."""

    @classmethod
    def of(cls, environ: dict[str, Any]) -> Self:
        method: str = environ["REQUEST_METHOD"]
        return cls(environ, method.upper(), get_path_info(environ), new_request_id())

    @property
    def query(self) -> str:
        """The query string, still encoded."""
        text: str = self.environ.get("QUERY_STRING", "")
        return text

    @property
    def url(self) -> str:
        """The URL under ``PUBLIC_URL``, with path and query as the client sent them, undecoded.

        A request target in absolute form (RFC 9112, section 3.2.2) gives its path and query alone.
        """
        target: str | None = self.environ.get("RAW_URI")
        if target is None:
            # A server that is not gunicorn: percent-encoded again, as clients usually do it.
            target = quote(self.environ["PATH_INFO"].encode("latin-1"))
            target += f"?{self.query}" if self.query else ""
        elif not target.startswith("/"):
            target = "/" + target.partition("://")[2].partition("/")[2]
        return f"{settings.PUBLIC_URL}{target}"

    @cached_property
    def client_address(self) -> str:
        return client_address_of(self.environ)

    def header(self, name: str) -> str | None:
        """The value of a header, named as in ``X-Signature``, as Latin-1 text."""
        value: str | None = self.environ.get(HttpHeaders.to_wsgi_name(name))
        return value

    @cached_property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Each header's name, in title case, and value."""
        entries = self.environ.items()
        return tuple([(name, value) for key, value in entries if (name := _header_name(key))])

    def read_body(self, max_bytes: int) -> bytes:
        """Reads the bytes that were sent, unparsed; call it once.

        Raises ``Problem`` if they are too many or incomplete.
        """
        try:
            self.body = read_body_of(self.environ, max_bytes)
        except BodyTooLarge:
            raise Problem(
                ProblemCode.BODY_TOO_LARGE, f"A payload may have at most {max_bytes} bytes."
            ) from None
        except BodyIncomplete:
            raise Problem(
                ProblemCode.MALFORMED_BODY, "The body is incomplete or malformed."
            ) from None
        return self.body


@lru_cache(maxsize=1024)
def _header_name(key: str) -> str | None:
    return HttpHeaders.parse_header_name(key)
