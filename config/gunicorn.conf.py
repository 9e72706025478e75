"""How gunicorn serves Moonhook. Everything here comes from config.settings."""

import logging
import os
from typing import Any

from django.conf import settings
from gunicorn.glogging import Logger

from config.http.redaction import redact
from config.web.arbiter import MoonhookArbiter
from config.web.worker import MoonhookWorker
from scripts_engine.lockdown_policy import require_lockdown


class RedactingLogger(Logger):
    """Call tokens travel in paths: they are taken out of every line."""

    def atoms(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        atoms: dict[str, Any] = super().atoms(*args, **kwargs)
        return {
            name: redact(value) if isinstance(value, str) else value
            for name, value in atoms.items()
        }

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.addFilter(_redact_record)


def on_starting(server: Any) -> None:
    """However gunicorn is started, production does not run scripts without the lockdown."""
    require_lockdown()


def pre_fork(server: MoonhookArbiter, worker: MoonhookWorker) -> None:
    server.place_worker(worker)


def _redact_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = redact(record.getMessage()), ()
    return True


wsgi_app = "config.wsgi:application"
bind = [f"{settings.BIND}:{settings.PORT}"]
worker_class = MoonhookWorker
workers = settings.WEB_WORKERS
threads = settings.WEB_THREADS
# With sandboxes, database and log well below the 1,024 files that a process commonly may open.
worker_connections = 500
max_requests = settings.WEB_MAX_REQUESTS
max_requests_jitter = settings.WEB_MAX_REQUESTS // 10
keepalive = 5
timeout = 60
# Heartbeats in memory: a disk that is slow for a minute is no reason to kill a worker.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
graceful_timeout = settings.GRACEFUL_TIMEOUT_SECONDS
logger_class = RedactingLogger
accesslog = "-"
access_log_format = '%(h)s "%(r)s" %(s)s %(b)s %(M)sms'
errorlog = "-"
# A socket in the home directory that can stop the server: nobody asked for it.
control_socket_disable = True
