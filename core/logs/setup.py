"""The configuration of logging in every process, and how events are rendered."""

import json
import logging
import logging.config
import sys
import threading
from collections.abc import Callable, MutableMapping
from types import TracebackType
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from structlog.typing import Processor, WrappedLogger

from core.http.redaction import redact
from core.logs.context import add_bound

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

logger = structlog.get_logger(__name__)


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


def configure_logs(config: dict[str, Any]) -> None:
    """Configures the standard library's loggers from ``config``, and structlog's."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *COLLECT,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(config)
    logging.captureWarnings(True)
    if settings.IS_LOG_JSON:
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_uncaught_in_thread


class RefusalsWithoutTraceback(logging.Filter):
    """Drops the traceback of suspicious requests, which clients can cause at will."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security."):
            record.exc_info = record.exc_text = None
        return True


def event_formatter(*, is_json: bool) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=COLLECT,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            redact_event,
            renderer(is_json=is_json, is_coloured=sys.stderr.isatty()),
        ],
    )


def _log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    logger.critical("Uncaught exception", exc_info=(kind, error, traceback))


def _log_uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is not None:
        logger.error(
            "Uncaught exception in a thread",
            exc_info=(arguments.exc_type, arguments.exc_value, arguments.exc_traceback),
        )
