"""What the trusted and the untrusted side agree on: the job, the host's calls, the outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from scripts_engine.sandbox.limits import Limits


@dataclass(frozen=True, slots=True)
class Job:
    """One script and the call that it answers.

    `params` holds what `params.get` finds: body, method, query, content_type, remote_addr,
    run_id, hook_id, script_id, org_id; an absent one is nil in Lua. `headers` may repeat a
    name; the script sees the values joined with ", ". `trace_lines` names the line at which
    time ran out, and makes tight loops several times slower.
    """

    source: bytes
    chunk_name: str
    params: Mapping[str, bytes] = field(default_factory=dict)
    headers: Sequence[tuple[bytes, bytes]] = ()
    limits: Limits = field(default_factory=Limits)
    trace_lines: bool = False


Value = None | bool | int | float | bytes | list["Value"] | dict[bytes, "Value"]


# By their names in a message.
HOST_CALLS: Mapping[bytes, str] = {
    name.encode(): name
    for name in (
        "http.request",
        "store.get",
        "store.set",
        "store.delete",
        "store.increment",
        "secrets.get",
    )
}


class HostCallError(Exception):
    """A host call failed; the text is raised in the script as a Lua error."""


class HostHandler(Protocol):
    """Answers the host calls of one run, in the thread that called `SandboxPool.run`.

    Names and arguments, as the prelude sends them (strings are bytes, keys of a dict too):
        http.request   {method, url, headers: {name: value}, body?, timeout?}
                       -> {status, headers, body}
        store.get      key -> JSON text or None
        store.set      key, JSON text, ttl in seconds or None -> None
        store.delete   key -> None
        store.increment  key, by -> the new number
        secrets.get    name -> the secret or None

    Raises HostCallError for what the script may hear of. `deadline` is the instant of
    `time.monotonic()` at which the run ends: the handler bounds itself by it.
    """

    def __call__(self, name: str, args: list[Value], *, deadline: float) -> Value: ...


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


@dataclass(frozen=True, slots=True)
class Reply:
    """What the script answered. Header values are Latin-1 text, as WSGI wants them."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of http, store or secrets, for the timeline of a run."""

    name: str
    offset_seconds: float
    """Since the start of the run."""
    duration_seconds: float
    error: str | None

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended. `reply` is there only when it succeeded, `error` only when it did not."""

    kind: OutcomeKind
    reply: Reply | None
    error: ScriptError | None
    logs: tuple[LogLine, ...]
    host_calls: tuple[HostCall, ...]
    started_at: float
    """Seconds since the epoch, when the script was handed over."""
    queue_seconds: float
    """Waiting for a slot and for a process: not counted as running."""
    duration_seconds: float
    cpu_seconds: float
    """Of the process; 0 when it had to be killed."""


class LayerName(StrEnum):
    RLIMITS = "rlimits"
    NO_NEW_PRIVS = "no_new_privs"
    PDEATHSIG = "pdeathsig"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
