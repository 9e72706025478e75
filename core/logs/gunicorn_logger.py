"""gunicorn's words and its access log, as events like all others."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils.log import configure_logging
from gunicorn.glogging import Logger
from structlog.contextvars import clear_contextvars

from core.logs.access_line import AccessLog


class GunicornLogger(Logger):
    """What gunicorn says goes to the root logger's handler; each request makes one line."""

    def setup(self, cfg: Any) -> None:
        self.cfg = cfg
        # The parent of the web workers loads no application that would have done it.
        configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
        self.error_log.propagate = True
        self._access_log = AccessLog(is_json=settings.IS_LOG_JSON)
        self._access_log_enabled = settings.IS_ACCESS_LOGGED and AccessLog.is_wanted()

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: timedelta) -> None:
        """Called when the reply has been sent, in the thread that answered."""
        if self._access_log_enabled:
            self._access_log.write(environ, str(resp.status), resp.sent, request_time)
        clear_contextvars()
