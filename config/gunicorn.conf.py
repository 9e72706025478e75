"""gunicorn's configuration, derived from config.settings."""

import os
from typing import Any

from django.conf import settings

from core.logs.access import GunicornLogger
from core.metrics.instruments import export_zeros
from core.metrics.process_files import delete_gauges
from core.metrics.processes import announce
from core.server.arbiter import MoonhookArbiter
from core.server.worker import MoonhookWorker
from hooks.flows.call_notes import call_notes
from scripts_engine.metrics import SANDBOX_SLOTS
from scripts_engine.sandbox_pool import fit_to_open_files, sandbox_pool


def on_starting(server: Any) -> None:
    server.cfg.set("worker_connections", fit_to_open_files(connections=worker_connections))


def pre_fork(server: MoonhookArbiter, worker: MoonhookWorker) -> None:
    server.assign_listener(worker)


def post_worker_init(worker: Any) -> None:
    # After the fork, because processes share no sandboxes; before the first requests come together.
    sandbox_pool()
    announce("web")
    export_zeros()
    SANDBOX_SLOTS.set(settings.SANDBOX_SLOTS)
    call_notes.start()


def worker_exit(server: Any, worker: Any) -> None:
    call_notes.stop()


def child_exit(server: Any, worker: Any) -> None:
    delete_gauges(worker.pid)


wsgi_app = "config.wsgi:application"
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
logger_class = GunicornLogger
# The control socket, in the home directory, could stop the server and is not needed.
control_socket_disable = True
