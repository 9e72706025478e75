"""The parts of gunicorn that core.server and core.logs build on, most of them undocumented.

A failure here after an upgrade means: read what changed in gunicorn, adapt our subclass, and
only then change the table. pyproject.toml pins gunicorn to one minor release for this reason.
"""

import ast
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from gunicorn import sock, util
from gunicorn.app.base import Application
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.http import wsgi
from gunicorn.http.wsgi import Response
from gunicorn.workers.base import Worker
from gunicorn.workers.gthread import TConn, ThreadWorker

from core.logs.access import GunicornLogger
from core.server.arbiter import MoonhookArbiter, WebServer
from core.server.client import Connection
from core.server.reply import HttpReply
from core.server.worker import MoonhookWorker

SIGNATURES: dict[Callable[..., Any], str] = {
    Arbiter.__init__: "(self, app)",
    Arbiter.reexec: "(self)",
    Arbiter.run: "(self)",
    Arbiter.stop: "(self, graceful=True)",
    Arbiter.manage_workers: "(self)",
    Arbiter.spawn_worker: "(self)",
    Arbiter.kill_worker: "(self, pid, sig)",
    Arbiter.handle_hup: "(self)",
    Arbiter.handle_term: "(self)",
    Arbiter.wait_for_signals: "(self, timeout=1.0)",
    Worker.__init__: "(self, age, ppid, sockets, app, timeout, cfg, log)",
    ThreadWorker.init_process: "(self)",
    ThreadWorker.get_thread_pool: "(self)",
    ThreadWorker.run: "(self)",
    ThreadWorker.notify: "(self)",
    ThreadWorker.handle_exit: "(self, sig, frame)",
    ThreadWorker.set_accept_enabled: "(self, enabled)",
    ThreadWorker.accept: "(self, listener)",
    ThreadWorker.on_pending_socket_readable: "(self, conn, client)",
    ThreadWorker.on_client_socket_readable: "(self, conn, client)",
    ThreadWorker.wait_for_and_dispatch_events: "(self, timeout)",
    ThreadWorker.enqueue_req: "(self, conn)",
    ThreadWorker.handle: "(self, conn)",
    ThreadWorker.finish_request: "(self, conn, fs)",
    ThreadWorker.murder_pending: "(self)",
    TConn.__init__: "(self, cfg, sock, client, server)",
    TConn.set_timeout: "(self)",
    TConn.close: "(self, graceful=False)",
    Logger.setup: "(self, cfg)",
    Logger.access: "(self, resp, req, environ, request_time)",
    Application.__init__: "(self, usage=None, prog=None)",
    Application.load: "(self)",
    Application.load_config: "(self)",
    Application.load_config_from_file: "(self, filename)",
    Application.wsgi: "(self)",
    Worker.handle_error: "(self, req, client, addr, exc)",
    Response.__init__: "(self, req, sock, cfg)",
    Response.process_headers: "(self, headers)",
    Response.send_headers: "(self)",
    Response.close: "(self)",
    Response._emit_body: "(self, data)",
    sock.create_sockets: "(conf, log, fds=None)",
    wsgi.base_environ: "(cfg)",
    util.import_app: "(module)",
    util.http_date: "(timestamp=None)",
    util.split_request_uri: "(uri)",
    util.unquote_to_wsgi_str: "(string)",
    util.write_error: "(sock, status_int, reason, mesg)",
}

ATTRIBUTES: dict[type, set[str]] = {
    Arbiter: {"LISTENERS", "WORKERS", "cfg", "log", "num_workers"},
    ThreadWorker: {
        "_accepting",
        "age",
        "alive",
        "cfg",
        "keepalived_conns",
        "log",
        "max_keepalived",
        "max_requests",
        "nr",
        "nr_conns",
        "pending_conns",
        "pid",
        "poller",
        "sockets",
        "worker_connections",
    },
    TConn: {"client", "server", "sock", "timeout"},
    Response: {
        "chunked",
        "force_close",
        "headers",
        "headers_sent",
        "req",
        "response_length",
        "sent",
        "should_close",
        "sock",
        "start_response",
        "status",
        "version",
        "write",
    },
    Logger: {"_access_log_enabled", "cfg", "error_log"},
}

SUBCLASSES = {
    MoonhookArbiter: Arbiter,
    MoonhookWorker: ThreadWorker,
    WebServer: Application,
    Connection: TConn,
    GunicornLogger: Logger,
    HttpReply: Response,
}


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__qualname__)
def test_signature_is_unchanged(function: Callable[..., Any]) -> None:
    assert str(inspect.signature(function)) == SIGNATURES[function]


@pytest.mark.parametrize("owner", ATTRIBUTES, ids=lambda owner: owner.__name__)
def test_attributes_still_exist(owner: type) -> None:
    assert ATTRIBUTES[owner] - attributes_of(owner) == set()


@pytest.mark.parametrize("subclass", SUBCLASSES, ids=lambda subclass: subclass.__name__)
def test_every_overridden_method_is_listed(subclass: type) -> None:
    parent = SUBCLASSES[subclass]
    methods = {name for name, value in vars(subclass).items() if inspect.isfunction(value)}
    overridden = {getattr(parent, name) for name in methods - {"__init__"} if hasattr(parent, name)}

    assert overridden - set(SIGNATURES) == set()


def attributes_of(owner: type) -> set[str]:
    """The class attributes, and those that any method of the class assigns to ``self``."""
    return set(dir(owner)) | {
        node.attr
        for base in owner.__mro__[:-1]
        for node in ast.walk(ast.parse(inspect.getsource(base)))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
