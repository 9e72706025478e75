"""The access log, one line per request, and gunicorn's log messages as events."""

import logging
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.utils.log import configure_logging
from gunicorn.glogging import Logger

from core.http.origin import client_address_of
from core.http.redaction import redact
from core.logs.context import bound, unbind_all
from core.logs.setup import Event, redact_event, renderer

LOGGER = "moonhook.access"
_STDERR = 2
_MAX_PATH_LENGTH = 1000
_QUOTED = re.compile(r"[\s='\"]")
_timestamp = structlog.processors.TimeStamper(fmt="iso", utc=True)


class AccessLog:
    """Writes the lines that the loggers would write, without their records and locks."""

    def __init__(self, *, is_json: bool) -> None:
        is_coloured = os.isatty(_STDERR)
        self._render = (
            renderer(is_json=is_json, is_coloured=is_coloured)
            if is_json or is_coloured
            else _in_columns
        )

    @staticmethod
    def is_wanted() -> bool:
        return logging.getLogger(LOGGER).isEnabledFor(logging.INFO)

    def write(
        self, environ: Mapping[str, Any], status: str, sent_bytes: int, duration: timedelta
    ) -> None:
        event: Event = {
            **_timestamp(None, "info", {}),
            "event": "request",
            # Only what callers or views have set may contain secrets; the rest is not searched.
            "method": redact(environ["REQUEST_METHOD"]),
            # Without the query string, which may contain callers' secrets.
            "path": redact(environ["RAW_URI"].partition("?")[0][:_MAX_PATH_LENGTH]),
            "status": int(status[:3]),
            "bytes": sent_bytes,
            "duration_ms": round(duration.total_seconds() * 1000, 3),
            "client": client_address_of(environ),
            **redact_event(None, "info", {**bound()}),
            "level": "info",
            "logger": LOGGER,
        }
        line = self._render(None, "info", event)
        # A single write, usually shorter than PIPE_BUF, so that lines of processes do not mix.
        os.write(_STDERR, f"{line}\n".encode(errors="backslashreplace"))


def _in_columns(logger: object, method: str, event: Event) -> str:
    """Renders like structlog's ConsoleRenderer, in a third of the time."""
    start = f"{event.pop('timestamp')} [{event.pop('level'):<9}] {event.pop('event')}"
    name = event.pop("logger")
    return f"{start} [{name}] " + " ".join(f"{key}={_plain(event[key])}" for key in sorted(event))


def _plain(value: object) -> str:
    text = str(value)
    return repr(text) if _QUOTED.search(text) else text


class GunicornLogger(Logger):
    """Sends gunicorn's messages to the root logger, and writes one line per request."""

    def setup(self, cfg: Any) -> None:
        self.cfg = cfg
        # The arbiter does not load the application, which would configure logging.
        configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
        self.error_log.propagate = True
        self._access_log = AccessLog(is_json=settings.IS_LOG_JSON)
        self._access_log_enabled = settings.IS_ACCESS_LOGGED and AccessLog.is_wanted()

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        """Called after the reply was sent, in the thread that served the request."""
        if self._access_log_enabled:
            self._access_log.write(environ, str(resp.status), resp.sent, request_time)
        unbind_all()
