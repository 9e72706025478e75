"""The contract between the parent, a child and the rest of the project.

A `Job` goes in, an `Outcome` comes out. In between, the script makes host calls, which a
`HostHandler` answers. `LayerName` lists the layers of a child's lockdown.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, Protocol

from scripts_engine.sandbox.limits import (
    MAX_LIBRARIES,
    MAX_LIBRARY_KEY_BYTES,
    MAX_PROGRAM_BYTES,
    MAX_SOURCE_BYTES,
    Limits,
)

_LENGTH = struct.Struct("<I")


class Library(NamedTuple):
    """A chunk that `require` runs once in a run, for what it returns."""

    chunk_name: str
    source: bytes
    requires: Mapping[bytes, bytes] = MappingProxyType({})
    """Keys of the libraries that it may require, by the names that it uses for them."""


@dataclass(frozen=True, slots=True)
class Libraries:
    """The libraries that a script may load, also through one another.

    A key stands for one library, with its name and requirements, in all runs of a tenant: a child
    keeps what it has compiled under the key. Raises ValueError if they are over a limit or a key
    has no library.
    """

    requires: Mapping[bytes, bytes] = field(default_factory=dict)
    """Keys by the names that the script uses."""
    by_key: Mapping[bytes, Library] = field(default_factory=dict)
    source_bytes: int = field(init=False)
    """The length of all sources."""
    packed_requires: bytes = field(init=False)
    """`requires` as a child gets it: see `pack_texts`."""

    def __post_init__(self) -> None:
        if len(self.by_key) > MAX_LIBRARIES:
            raise ValueError(f"more than {MAX_LIBRARIES} libraries")
        sizes = [len(library.source) for library in self.by_key.values()]
        if max(sizes, default=0) > MAX_SOURCE_BYTES or sum(sizes) > MAX_PROGRAM_BYTES:
            raise ValueError("the sources of the libraries are too long")
        if not all(0 < len(key) <= MAX_LIBRARY_KEY_BYTES for key in self.by_key):
            raise ValueError(f"a key must have 1 to {MAX_LIBRARY_KEY_BYTES} bytes")
        required = [self.requires, *(library.requires for library in self.by_key.values())]
        if any(key not in self.by_key for names in required for key in names.values()):
            raise ValueError("a required library is missing")
        object.__setattr__(self, "source_bytes", sum(sizes))
        names = [part for pair in self.requires.items() for part in pair]
        object.__setattr__(self, "packed_requires", pack_texts(names))


def pack_texts(texts: Iterable[bytes]) -> bytes:
    """Each text behind its length, as Lua's string.unpack "<s4"."""
    return b"".join(_LENGTH.pack(len(text)) + text for text in texts)


NO_LIBRARIES = Libraries()


class Job(NamedTuple):
    """A script and the call that it answers."""

    source: bytes
    chunk_name: str
    params: Mapping[str, bytes] = MappingProxyType({})
    """For `params.get`: body, method, query, content_type, remote_addr, run_id, hook_id,
    script_id, org_id and others. A missing one is nil in Lua."""
    headers: Sequence[tuple[bytes, bytes]] = ()
    """The script sees the values of a repeated name joined with ", "."""
    limits: Limits = Limits()
    trace_lines: bool = False
    """Name the line at which time ran out. Tight loops run several times slower."""
    libraries: Libraries = NO_LIBRARIES


# A value in a host call: its arguments or its answer. Strings are bytes.
Value = None | bool | int | float | bytes | list["Value"] | dict[bytes, "Value"]


# By name, as a child sends it.
HOST_CALLS: Mapping[bytes, str] = {
    name.encode(): name
    for name in (
        "http.request",
        "http.get",
        "http.head",
        "http.post",
        "http.put",
        "http.patch",
        "http.delete",
        "queue.push",
        "store.get",
        "store.set",
        "store.set_if_absent",
        "store.delete",
        "store.increment",
        "store.list",
        "secrets.get",
    )
}


class HostCallError(Exception):
    """A host call failed; the script gets the text as a Lua error.

    ``hint`` says what to change, such as a setting. It is recorded for administrators; the script
    does not get it, because a script may pass its errors on to its caller.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(slots=True)
class CallNote:
    """What the handler notes about one call for the timeline. It may contain secrets."""

    subject: bytes = b""
    """What the call is about, such as a key."""
    result: str = ""
    """How it ended, such as the size of the value."""


class HostHandler(Protocol):
    """Answers the host calls of one run, in the thread that called `SandboxPool.run`.

    Names, arguments and answers (strings are bytes, as are the keys of a dict):
        http.request   {method, url, headers: {name: value}, body?, timeout?}
                       -> {status, headers, body}
        http.get, head, post, put, patch, delete  the same without a method
        queue.push     script, payload, delay in seconds or None, key or None, attempts or None
                       -> [id of the run, whether it is new]
        store.get      key -> JSON text or None
        store.set      key, JSON text, ttl in seconds or None -> None
        store.set_if_absent  key, JSON text, ttl in seconds or None -> whether it was set
        store.delete   key -> None
        store.increment  key, by -> the new number
        store.list     prefix, limit -> the keys, sorted
        secrets.get    name -> the secret or None

    Raises HostCallError with a text that the script may see. The handler must answer before
    `deadline`, the `time.monotonic()` at which the run ends. It fills in `note`.
    """

    def __call__(
        self, name: str, args: list[Value], *, deadline: float, note: CallNote
    ) -> Value: ...


class OutcomeKind(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    REPLY_TOO_LARGE = "reply-too-large"


@dataclass(frozen=True, slots=True)
class LogLine:
    at: float
    """Seconds since the epoch."""
    level: str
    """debug, info, warn or error."""
    text: str


@dataclass(frozen=True, slots=True)
class ScriptError:
    """Why a script failed, for administrators only."""

    message: str
    line: int | None = None
    traceback: str = ""


class GlobalUseKind(StrEnum):
    UNDEFINED = "undefined"
    """Read, but neither provided by Moonhook nor assigned in the script."""
    ASSIGNED = "assigned"
    """Assigned, and not provided by Moonhook."""


@dataclass(frozen=True, slots=True)
class GlobalUse:
    """A use of a global that looks like a mistake."""

    kind: GlobalUseKind
    name: str
    line: int
    suggestion: str = ""
    """The name that may be meant; the name itself if a local of that name is out of scope."""


# RFC 9110. The prelude drops the body of such a reply.
STATUSES_WITHOUT_BODY = frozenset({204, 205, 304})


class Reply(NamedTuple):
    """The script's reply. Header values are Latin-1 text, as WSGI wants them."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Retry:
    """The script cannot do its work now and asks for another attempt."""

    after_seconds: float | None
    """From 0 to MAX_RETRY_SECONDS; None leaves it to the queue."""
    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The script cannot do its work, and another attempt would be in vain."""

    reason: str


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call of http, queue, store or secrets, for the timeline of a run."""

    name: str
    offset_seconds: float
    """Since the start of the run."""
    duration_seconds: float
    error: str | None
    hint: str = ""
    subject: bytes = b""
    result: str = ""

    @property
    def ok(self) -> bool:
        return self.error is None


class Outcome(NamedTuple):
    """How a run ended. A run that succeeded has a `reply`, any other has an `error`."""

    kind: OutcomeKind
    reply: Reply | None
    error: ScriptError | None
    logs: tuple[LogLine, ...]
    host_calls: tuple[HostCall, ...]
    started_at: float
    """Seconds since the epoch, when the script was sent to a child."""
    queue_seconds: float
    """Time spent waiting for a slot and a process; not part of the duration."""
    duration_seconds: float
    cpu_seconds: float
    """CPU time of the process; 0 if it is not known, as after most kills."""
    verdict: Retry | Fail | None = None
    """Returned by the script in place of a reply. The run has failed, with the reason as error."""


class LayerName(StrEnum):
    """The layers of a child's lockdown."""

    RLIMITS = "rlimits"
    NO_NEW_PRIVS = "no_new_privs"
    PDEATHSIG = "pdeathsig"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
