"""How gunicorn serves Moonhook. Everything here comes from config.settings."""

import os
from typing import Any

from django.conf import settings

from core.logs.access import GunicornLogger
from core.metrics.catalogue import SANDBOX_SLOTS
from core.metrics.process_files import (
    announce,
    delete_gauges,
    delete_those_of_dead_processes,
    export_zeros,
)
from core.server.arbiter import MoonhookArbiter
from core.server.services import services_of_this_node
from core.server.worker import MoonhookWorker
from scripts_engine.lockdown_policy import require_lockdown


def on_starting(server: Any) -> None:
    """However gunicorn is started, production does not run scripts without the lockdown."""
    require_lockdown()
    if services_of_this_node() is None:
        # The supervisor deletes all files instead.
        delete_those_of_dead_processes()


def pre_fork(server: MoonhookArbiter, worker: MoonhookWorker) -> None:
    server.assign_listener(worker)


def post_worker_init(worker: Any) -> None:
    announce("web")
    export_zeros()
    SANDBOX_SLOTS.set(settings.SANDBOX_SLOTS)


def child_exit(server: Any, worker: Any) -> None:
    delete_gauges(worker.pid)


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
# A file is sent like any reply: what its reader is slow to take waits outside of the threads.
sendfile = False
timeout = 60
# Heartbeats in memory: a disk that is slow for a minute is no reason to kill a worker.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
graceful_timeout = settings.GRACEFUL_TIMEOUT_SECONDS
# No client's word and no proxy's moves the path or sets the scheme here: settings say which proxies
# Django listens to. A name with an underscore could pass for another header's, and is dropped.
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}
header_map = "drop"
# The one that core/server/framing.py has to agree with about where a request ends.
http_parser = "python"
logger_class = GunicornLogger
# A socket in the home directory that can stop the server: nobody asked for it.
control_socket_disable = True
