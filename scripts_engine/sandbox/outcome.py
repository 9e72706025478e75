"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
