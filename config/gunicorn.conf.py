"""How gunicorn serves Moonhook. Everything here comes from config.settings."""

from typing import Any

from django.conf import settings

from config.logs.gunicorn_logger import GunicornLogger
from config.metrics.catalogue import SANDBOX_SLOTS
from config.scrape.files import announce, forget, forget_the_dead, show_all
from scripts_engine.lockdown_policy import require_lockdown


def on_starting(server: Any) -> None:
    """However gunicorn is started, production does not run scripts without the lockdown."""
    require_lockdown()
    forget_the_dead()


def post_worker_init(worker: Any) -> None:
    announce("web")
    show_all()
    SANDBOX_SLOTS.set(settings.SANDBOX_SLOTS)


def child_exit(server: Any, worker: Any) -> None:
    forget(worker.pid)


wsgi_app = "config.wsgi:application"
bind = [f"{settings.BIND}:{settings.PORT}"]
worker_class = "gthread"
workers = settings.WEB_WORKERS
threads = settings.WEB_THREADS
# With one shared socket, keep-alive connections of a burst end up with one worker.
reuse_port = True
keepalive = 5
timeout = 60
graceful_timeout = settings.GRACEFUL_TIMEOUT_SECONDS
logger_class = GunicornLogger
# A socket in the home directory that can stop the server: nobody asked for it.
control_socket_disable = True
