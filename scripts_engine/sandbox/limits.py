"""Every limit of a run, and the headers that its reply may not have.

Both sides keep to them; the parent does not rely on the child.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

MAX_SOURCE_BYTES = 64 * KIB
# A script's source together with those of all libraries that it may load.
MAX_PROGRAM_BYTES = 256 * KIB
MAX_LIBRARIES = 100
MAX_LIBRARY_KEY_BYTES = 64
MAX_WALL_SECONDS = 25.0
# How long a run waits for a sandbox.
MAX_QUEUE_SECONDS = 1.0
MAX_LOG_BYTES = 64 * KIB
# A recorded log, with the notice of what was left out.
MAX_LOG_TEXT_BYTES = MAX_LOG_BYTES + 4 * KIB
MAX_LOG_LINES = 1000
MAX_REPLY_BYTES = 1 * MIB
MAX_PAYLOAD_BYTES = 1 * MIB
MAX_MESSAGE_BYTES = 4 * KIB
MAX_TRACEBACK_BYTES = 16 * KIB
# How long a script may ask the queue to wait before the next attempt.
MAX_RETRY_SECONDS = 86_400
# The payload of a run that a script puts into the queue.
MAX_PUSHED_BYTES = 256 * KIB
# For a reply and for a script's HTTP requests and responses. Bytes count names and values.
MAX_HEADERS = 100
MAX_HEADER_BYTES = 16 * KIB
# A frame between the processes: a payload, a reply, or a host call.
MAX_FRAME_BYTES = 8 * MIB
# A child's answer at the end of a run: a reply with its headers, or an error.
MAX_ANSWER_BYTES = MAX_REPLY_BYTES + 64 * KIB
# Fields of an answer (including a hundred headers with their values), and values in the arguments
# of one host call. Without these, a small frame could unpack into millions of objects.
MAX_ANSWER_FIELDS = 256
MAX_ARGUMENT_VALUES = 20_000
MAX_ARGUMENT_DEPTH = 32
# A script may catch the error of a host call over the limit; one that goes on calling is ended.
MAX_REFUSED_HOST_CALLS = 100
MAX_HOST_CALL_ERROR_CHARS = 1000
# Uses of globals that a listing returns, and the longest name among them; as in global_uses.lua.
MAX_LISTED_GLOBALS = 50
MAX_LISTED_NAME_BYTES = 64
# The longest text of ToJson, to bound tables that refer to the same table many times.
MAX_JSON_BYTES = 16 * MIB
# The address space of a child's process.
PROCESS_MEMORY_BYTES = 512 * MIB

# Replies share one origin with the whole service and pass through its proxies. A script may set
# headers about its own resource (caching, CORS, redirects, content), but not those reserved for the
# host: about the origin, to a browser, or about the connection, to a server or proxy.
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
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. A run over one of them ends with an outcome that names it."""

    wall_seconds: float = 10.0
    cpu_seconds: int = 5
    lua_memory_bytes: int = 64 * MIB
    reply_bytes: int = MAX_REPLY_BYTES
    log_bytes: int = MAX_LOG_BYTES
    log_lines: int = MAX_LOG_LINES
    json_depth: int = 128
    host_calls: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.wall_seconds <= MAX_WALL_SECONDS:
            raise ValueError(f"wall_seconds must be over 0 and at most {MAX_WALL_SECONDS:g}")
        if self.lua_memory_bytes < MIB:
            raise ValueError("lua_memory_bytes must be at least 1 MiB")
        if not 0 <= self.log_bytes <= MAX_LOG_BYTES or not 0 <= self.log_lines <= MAX_LOG_LINES:
            raise ValueError("the log limits are over the size of the log area")
        if not 0 <= self.reply_bytes <= MAX_REPLY_BYTES:
            raise ValueError(f"reply_bytes must be at most {MAX_REPLY_BYTES}")

    def as_run_arguments(self) -> tuple[int, ...]:
        """The limits as arguments of the prelude's `run`, the memory limit first."""
        return (
            self.lua_memory_bytes,
            self.reply_bytes,
            self.json_depth,
            self.log_bytes,
            self.log_lines,
        )


def figure_in_words(size_bytes: int) -> str:
    """Format a size for a message: 65536 -> "64 KiB"."""
    if size_bytes >= MIB and size_bytes % MIB == 0:
        return f"{size_bytes // MIB} MiB"
    if size_bytes >= KIB and size_bytes % KIB == 0:
        return f"{size_bytes // KIB} KiB"
    return f"{size_bytes} bytes"


def size_over_limit_in_words(size_bytes: int, limit_bytes: int) -> str:
    """Format a size that is over a limit, so that it reads as larger: 1.3 MiB; 1,048,577 bytes."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        rounded = round(size_bytes / unit, 1)
        if limit_bytes >= unit and rounded * unit > limit_bytes:
            return f"{rounded:g} {name}"
    return f"{size_bytes:,} bytes"


def is_reserved(name: bytes) -> bool:
    """Whether a script may not set the header, in any case or spelling.

    Some servers normalise names, so ``X_Sendfile`` may arrive as ``X-Sendfile``.
    """
    spelled = _SEPARATORS.sub("-", name.decode("latin-1").lower()).strip("-")
    return spelled in _RESERVED or f"{spelled}-".startswith(RESERVED_PREFIXES)
