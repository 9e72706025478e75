"""Which headers a script's reply may have.

The prelude drops the others; the parent checks again, since the child may have been taken over.

Replies share one origin with the whole service and pass through its proxies. A script may set
headers about its own resource (caching, CORS, redirects, content), but not those reserved
for the host: about the origin, to a browser, or about the connection, to a server or proxy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from scripts_engine.sandbox.limits import MAX_HEADER_BYTES, MAX_HEADERS
from scripts_engine.sandbox.protocol import ProtocolError

RESERVED_NAMES = """
connection content-length http2-settings keep-alive te trailer transfer-encoding upgrade

date server status via x-request-id

content-security-policy content-security-policy-report-only referrer-policy
x-content-security-policy x-content-type-options x-webkit-csp

clear-site-data set-cookie set-cookie2

authentication-control authentication-info idp-signin-status optional-www-authenticate set-login
www-authenticate

alt-svc alt-used alternate-protocol expect-ct expect-staple onion-location public-key-pins
public-key-pins-report-only strict-transport-security

nel report-to reporting-endpoints

accept-ch accept-ch-lifetime activate-storage-access available-dictionary
cache-group-invalidation cache-groups critical-ch cross-origin-opener-policy
cross-origin-opener-policy-report-only dictionary-id observe-browsing-topics origin-agent-cluster
origin-isolation origin-policy origin-trial p3p service-worker service-worker-allowed
shared-storage-write speculation-rules use-as-dictionary x-allow-fledge
x-permitted-cross-domain-policies

edge-control x-esi x-lscache x-send-file
"""
_RESERVED = frozenset(RESERVED_NAMES.split())
# Prefixes of our own headers, of browser features, and of proxies, caches and file servers.
RESERVED_PREFIXES = (
    "moonhook-",
    "ad-auction-",
    "attribution-reporting-",
    "sec-",
    "secure-session-",
    "proxy-",
    "surrogate-",
    "x-accel-",
    "x-appengine-",
    "x-lighttpd-",
    "x-litespeed-",
    "x-reproxy-",
    "x-sendfile",
)
# A name is a token (RFC 9110, 5.1); a value has no control character but the tab.
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN_IN_VALUES = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_SEPARATORS = re.compile(r"[^a-z0-9]+")
# The Content-Type that the prelude may add.
_DEFAULT_HEADERS = 1
_DEFAULT_HEADER_BYTES = len("Content-Type" + "text/plain; charset=utf-8")


def is_reserved(name: bytes) -> bool:
    """Whether a script may not set the header, in any case or spelling.

    Some servers normalise names, so ``X_Sendfile`` may arrive as ``X-Sendfile``.
    """
    spelled = _SEPARATORS.sub("-", name.decode("latin-1").lower()).strip("-")
    return spelled in _RESERVED or f"{spelled}-".startswith(RESERVED_PREFIXES)


def checked_headers(flat: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Pair up the headers that a child sent as name, value, name, value, …

    Raises ProtocolError if the prelude could not have sent them: the child may have been taken
    over.
    """
    names, values = flat[::2], flat[1::2]
    if len(names) != len(values):
        raise ProtocolError("a reply with a header without a value")
    if len(names) > MAX_HEADERS + _DEFAULT_HEADERS:
        raise ProtocolError("a reply with too many headers")
    headers: dict[bytes, tuple[str, str]] = {}
    size_bytes = 0
    for name, value in zip(names, values, strict=True):
        if not isinstance(name, bytes) or not isinstance(value, bytes):
            raise ProtocolError("a reply with headers that are not bytes")
        size_bytes += len(name) + len(value)
        if size_bytes > MAX_HEADER_BYTES + _DEFAULT_HEADER_BYTES:
            raise ProtocolError("a reply with headers that are too long")
        if not _NAME.fullmatch(name) or _FORBIDDEN_IN_VALUES.search(value):
            raise ProtocolError("a reply with a malformed header")
        if is_reserved(name) or name.lower() in headers:
            raise ProtocolError("a reply with a header that it may not have")
        headers[name.lower()] = name.decode("ascii"), value.decode("latin-1")
    return tuple(headers.values())
