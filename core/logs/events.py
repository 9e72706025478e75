"""Renders log events: adds context and time, and redacts secrets."""

import json
from collections.abc import Callable, MutableMapping
from typing import Any
from uuid import UUID

import structlog
from structlog.typing import Processor, WrappedLogger

from core.http.redaction import redact
from core.logs.bound import add_bound

Event = MutableMapping[str, Any]
Renderer = Callable[[WrappedLogger, str, Event], str]

# Run where the event happens, for loggers of the standard library too.
COLLECT: tuple[Processor, ...] = (
    add_bound,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)

_to_json = json.JSONEncoder().encode


def redact_event(logger: WrappedLogger, method: str, event: Event) -> Event:
    """Redacts secrets in every value, of any type and at any depth."""
    for key, value in event.items():
        event[key] = redact(value) if type(value) is str else _redacted(value)
    return event


def _redacted(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, dict):
        return {redact(str(key)): _redacted(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(inner) for inner in value]
    return redact(str(value))


def renderer(*, is_json: bool, is_coloured: bool = False) -> Renderer:
    """Returns a renderer of JSON objects for programs, or of columns for people."""
    if is_json:
        return lambda logger, method, event: _to_json(event)
    return structlog.dev.ConsoleRenderer(colors=is_coloured, pad_event_to=0)
