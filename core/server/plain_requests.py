"""Parses small, ordinary requests in fewer steps than gunicorn's parser.

Accepts only unambiguous requests: a path as the target, HTTP/1.1, fields with ordinary names that
occur once, and a body of declared length, whose end `framing.py` has found. gunicorn's parser reads
or refuses every other request. Both produce the same WSGI environment.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any, NamedTuple

from gunicorn.config import Config
from gunicorn.http.wsgi import base_environ
from gunicorn.util import unquote_to_wsgi_str

# The characters of RFC 3986, without what starts a host or a fragment.
_TARGET = r"(/(?!/)[!-\"$->@-~]*)(?:\?([!-\"$-~]*))?"
# Limited in length, because names are cached.
_FIELDS = r"(?:[A-Za-z0-9-]{1,64}:[\t -~\x80-\xff]*\r\n)*"
_HEAD = re.compile(
    rf"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) ({_TARGET}) HTTP/1\.1\r\n({_FIELDS})\r\n"
)
_FIELD = re.compile(r"([^:\r\n]+):([^\r]*)\r\n")
# Fields that change how the request is parsed, and the name that marks them.
_CHANGING = frozenset({"EXPECT", "HTTP2-SETTINGS", "TRANSFER-ENCODING", "UPGRADE"})
_NOT_PLAIN = ""
_WITHOUT_PREFIX = {"CONTENT-LENGTH": "CONTENT_LENGTH", "CONTENT-TYPE": "CONTENT_TYPE"}


class PlainRequest(NamedTuple):
    """A parsed request, with the attributes that gunicorn's response and error handling read."""

    method: str
    uri: str
    path: str
    query: str
    fields: Mapping[str, str]
    """By their names in the WSGI environment."""
    body: bytes
    closes: bool
    """Whether the client wants the connection closed after the reply."""
    version: tuple[int, int] = (1, 1)

    def should_close(self) -> bool:
        return self.closes


class PlainRequests:
    """Parses requests within the limits of gunicorn's configuration."""

    def __init__(self, cfg: Config) -> None:
        self._max_fields = cfg.limit_request_fields
        self._max_head_bytes = min(cfg.limit_request_line, cfg.limit_request_field_size)
        # Features that only gunicorn's parser implements.
        self._takes_none = (
            cfg.is_ssl or cfg.proxy_protocol != "off" or bool(os.environ.get("SCRIPT_NAME"))
        )
        self._same_for_all = base_environ(cfg) | {
            "wsgi.multithread": True,
            "wsgi.url_scheme": "http",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "SCRIPT_NAME": "",
        }

    def read(self, head: bytes, body: bytes) -> PlainRequest | None:
        """Returns the request, or ``None`` if gunicorn's parser must read it.

        ``head`` includes the empty line at its end; ``body`` is the whole body.
        """
        if self._takes_none or len(head) > self._max_head_bytes:
            return None
        match = _HEAD.fullmatch(head.decode("latin-1"))
        if match is None:
            return None
        method, uri, path, query, text = match.groups("")
        found = _FIELD.findall(text)
        fields = {_environ_name(name): value.strip(" \t") for name, value in found}
        # Fewer if a name occurs twice.
        if not len(fields) == len(found) <= self._max_fields or _NOT_PLAIN in fields:
            return None
        connection = fields.get("HTTP_CONNECTION", "").lower()
        if connection not in ("", "keep-alive", "close"):
            return None
        return PlainRequest(method, uri, path, query, fields, body, connection == "close")

    def environ(
        self, request: PlainRequest, client: tuple[Any, ...], server: tuple[Any, ...]
    ) -> dict[str, Any]:
        """Returns the WSGI environment (PEP 3333) of a request from the client's address."""
        path = request.path
        return {
            **self._same_for_all,
            "wsgi.input": BytesIO(request.body),
            "REQUEST_METHOD": request.method,
            "RAW_URI": request.uri,
            "PATH_INFO": unquote_to_wsgi_str(path) if "%" in path else path,
            "QUERY_STRING": request.query,
            "REMOTE_ADDR": client[0],
            "REMOTE_PORT": str(client[1]),
            "SERVER_NAME": server[0],
            "SERVER_PORT": str(server[1]),
            **request.fields,
        }


@lru_cache(maxsize=1024)
def _environ_name(field: str) -> str:
    """The field's name in the environment; ``""`` if only gunicorn may read its request."""
    name = field.upper()
    if name in _CHANGING:
        return _NOT_PLAIN
    return _WITHOUT_PREFIX.get(name) or "HTTP_" + name.replace("-", "_")
