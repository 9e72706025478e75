"""Configures logging in every process; ``LOGGING_CONFIG`` names it and Django calls it."""

import logging
import logging.config
import sys
import threading
from types import TracebackType
from typing import Any

import structlog
from django.conf import settings

from core.logs.events import COLLECT, redact_event, renderer

logger = structlog.get_logger(__name__)


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
