"""Refusals of a source, in words for the editor."""

from django.conf import settings
from django.core.exceptions import ValidationError

from core.errors import ConflictError, NotFoundError, RateLimitedError
from scripts_engine.flows.source import SourceError
from scripts_engine.sandbox import SandboxBusy, SandboxUnavailable

REFUSALS = (
    SourceError,
    ValidationError,
    RateLimitedError,
    ConflictError,
    NotFoundError,
    SandboxBusy,
    SandboxUnavailable,
)
_BUSY = "No sandbox slot became free to compile this. Nothing was saved; save again."


def saved_too_often(error: RateLimitedError) -> str:
    most, seconds = settings.SCRIPT_SAVES_PER_MINUTE, error.retry_after_seconds
    return (
        f"A script can be saved {most} times a minute. Nothing was saved; try again in {seconds} s."
    )


def words_for(refusal: Exception) -> str:
    """One of ``REFUSALS`` as a sentence; a compiler's error with its line."""
    match refusal:
        case SourceError():
            where = "" if refusal.line is None else f"Line {refusal.line}: "
            return where + refusal.flaw
        case ValidationError():
            return " ".join(refusal.messages)
        case RateLimitedError():
            return saved_too_often(refusal)
        case ConflictError() | NotFoundError():
            return str(refusal)
        case _:
            return _BUSY
