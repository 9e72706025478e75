"""A call of a hook, as the web server passes it on."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from django.conf import settings
from django.core.handlers.wsgi import get_path_info
from django.http.request import HttpHeaders

from core.http.body import BodyIncomplete, BodyTooLarge, read_body_of
from core.http.client_address import client_address_of
from core.http.problems import Problem, ProblemCode
from core.http.request_id import new_request_id


@dataclass(frozen=True, slots=True)
class Request:
    """A request of which nothing is parsed before it is asked for."""

    environ: dict[str, Any]
    method: str
    path: str
    """Decoded, with bytes that are not UTF-8 still percent-encoded."""
    request_id: str

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
    def client_address(self) -> str:
        return client_address_of(self.environ)

    def header(self, name: str) -> str | None:
        """The value of a header, named as in ``X-Signature``, as Latin-1 text."""
        value: str | None = self.environ.get(HttpHeaders.to_wsgi_name(name))
        return value

    def headers(self) -> Iterator[tuple[str, str]]:
        """Yields each header's name, in title case, and value."""
        for key, value in self.environ.items():
            name = _header_name(key)
            if name is not None:
                yield name, value

    def read_body(self) -> bytes:
        """Reads the bytes that were sent, unparsed; call it once.

        Raises ``Problem`` if they are too many or incomplete.
        """
        try:
            return read_body_of(self.environ, settings.HOOK_MAX_BODY_BYTES)
        except BodyTooLarge:
            raise Problem(
                ProblemCode.BODY_TOO_LARGE,
                f"A payload may have at most {settings.HOOK_MAX_BODY_BYTES} bytes.",
            ) from None
        except BodyIncomplete:
            raise Problem(
                ProblemCode.MALFORMED_BODY, "The body is incomplete or malformed."
            ) from None


@lru_cache(maxsize=1024)
def _header_name(key: str) -> str | None:
    return HttpHeaders.parse_header_name(key)
