"""gunicorn's configuration, derived from config.settings."""

import os
from typing import TYPE_CHECKING, Any

from django.conf import settings

from core.logs.access import GunicornLogger
from core.metrics.catalogue import SANDBOX_SLOTS, export_zeros
from core.metrics.process_files import delete_gauges, delete_those_of_dead_processes
from core.metrics.processes import announce
from core.server.arbiter import MoonhookArbiter
from core.server.service_table import services_of_this_node
from core.server.worker import MoonhookWorker
from scripts_engine.lockdown_policy import require_lockdown
from scripts_engine.open_files import fit_to_open_files

if TYPE_CHECKING:
    from scripts_engine.flows.call_notes.collector import CallNotes


def on_starting(server: Any) -> None:
    """Refuse to run scripts in production without the lockdown, however gunicorn was started."""
    require_lockdown()
    server.cfg.set("worker_connections", fit_to_open_files(connections=worker_connections))
    if services_of_this_node() is None:
        # The supervisor deletes all files instead.
        delete_those_of_dead_processes()


def pre_fork(server: MoonhookArbiter, worker: MoonhookWorker) -> None:
    server.assign_listener(worker)


def post_worker_init(worker: Any) -> None:
    announce("web")
    export_zeros()
    SANDBOX_SLOTS.set(settings.SANDBOX_SLOTS)
    call_notes().start()


def worker_exit(server: Any, worker: Any) -> None:
    call_notes().stop()


def call_notes() -> "CallNotes":
    """Those of this worker. Models can be imported only after the application is set up."""
    from scripts_engine.flows.call_notes.collector import call_notes  # noqa: PLC0415

    return call_notes


def child_exit(server: Any, worker: Any) -> None:
    delete_gauges(worker.pid)


wsgi_app = "config.wsgi:application"
bind = [f"{settings.BIND}:{settings.PORT}"]
worker_class = MoonhookWorker
workers = settings.WEB_WORKERS
threads = settings.WEB_THREADS
worker_connections = 500
max_requests = settings.WEB_MAX_REQUESTS
max_requests_jitter = settings.WEB_MAX_REQUESTS // 10
keepalive = 5
# Files are sent like other replies, so a slow client does not occupy a thread.
sendfile = False
timeout = 60
# Heartbeats in memory: a slow disk would otherwise get a worker killed.
worker_tmp_dir = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
graceful_timeout = settings.GRACEFUL_TIMEOUT_SECONDS
# gunicorn takes neither path nor scheme from headers; settings name the proxies that Django trusts.
# Header names with underscores are dropped, since they could pass for other headers.
forwarded_allow_ips = ""
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}
header_map = "drop"
# core/server/framing.py must agree with this parser about where a request ends.
http_parser = "python"
logger_class = GunicornLogger
# The control socket, in the home directory, could stop the server and is not needed.
control_socket_disable = True
