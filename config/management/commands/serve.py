"""``make run`` runs this command; images and systemd units run it with names of services."""

import gc
import hashlib
import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.checks import Tags, run_checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS
from django.urls import get_resolver

from config.management.commands import run_jobs
from config.operations.demo import PAYLOAD, Demo, create_demo_once
from core.database.readiness import (
    UnsuitableDatabase,
    WaitedTooLong,
    migrate,
    wait_for_database,
    wait_for_schema,
)
from core.metrics.process_files import delete_all, delete_gauges
from core.server.arbiter import WebServer
from core.server.listeners import reserve
from core.server.supervised_service import RestartPolicy, Service, become_child
from core.server.supervisor import Supervisor
from scripts_engine.sandbox import Layer
from scripts_engine.sandbox_pool import require_lockdown, sandbox_pool

logger = structlog.get_logger(__name__)

# How long to wait for a port that another server is about to release.
PORT_WAIT_SECONDS = 3


@cache
def web_server() -> WebServer:
    """Loads the application, which takes as long as the models."""
    return WebServer(settings.BASE_DIR / "config" / "gunicorn.conf.py")


def services(listeners: Sequence[socket.socket] = ()) -> dict[str, Service]:
    """Returns all services by their names on the command line, in start order."""
    return {
        "web": Service(
            "web server",
            lambda: web_server().serve(listeners),
            listeners,
            reload_signal=signal.SIGHUP,
            attempts_to_serve=3,
        ),
        "jobs": Service("jobs runner", lambda: call_command(run_jobs.Command())),
    }


class Command(BaseCommand):
    requires_system_checks = ()
    help = "Prepares the database and runs all services, or those that are named."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "services",
            nargs="*",
            metavar="service",
            help=f"{', '.join(services())}; default: all",
        )
        parser.add_argument(
            "--no-demo",
            action="store_true",
            help="create no demo organisation on the first start",
        )
        parser.add_argument(
            "--no-migrate",
            action="store_true",
            help="wait for another node to migrate the database",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # The database, secrets and outbox are created for their owner only.
        os.umask(0o077)
        names = _names(options["services"])
        listeners = self._reserve_port() if "web" in names else []
        self._prepare_in_a_fork(names, options)
        if "web" in names:
            web_server()
            delete_all()
        # Objects that the collector does not visit stay in memory shared by all services.
        gc.collect()
        gc.freeze()
        table = services(listeners)
        status = Supervisor(
            [table[name] for name in names],
            grace_seconds=settings.DRAIN_SECONDS + settings.GRACEFUL_TIMEOUT_SECONDS,
            policy=RestartPolicy(leftovers_seconds=settings.GRACEFUL_TIMEOUT_SECONDS),
            on_end=delete_gauges,
        ).run()
        sys.exit(status)

    def _prepare_in_a_fork(self, names: Sequence[str], options: Mapping[str, Any]) -> None:
        """Leave connections, threads and what migrations load to a process that ends.

        Services are forks of this one, so it must not have any. Exit if the other one fails.
        """
        parent_id = os.getpid()
        process_id = os.fork()
        if process_id == 0:
            become_child(parent_id)
            self._prepare(names, options)
            sandbox_pool().close()
            os._exit(0)
        if "web" in names:
            # Imports all views meanwhile.
            get_resolver().url_patterns  # noqa: B018
        _, status = os.waitpid(process_id, 0)
        if status:
            sys.exit(1)

    def _prepare(self, names: Sequence[str], options: Mapping[str, Any]) -> None:
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
        self._check_system()
        missing_layers = require_lockdown()
        self._prepare_database(is_migrated_here=not options["no_migrate"])
        if "web" in names:
            self._prepare_static_files()
        wants_demo = "web" in names and not settings.IS_PRODUCTION and not options["no_demo"]
        demo = create_demo_once() if wants_demo else None
        if settings.IS_LOG_JSON:
            self._log_start(names, missing_layers)
        if demo is not None or not settings.IS_LOG_JSON:
            self._greet(names, demo, missing_layers)

    def _check_system(self) -> None:
        """Run the system checks as other commands do, but log messages that are not errors."""
        messages = [message for message in run_checks() if not message.is_silenced()]
        if any(message.is_serious() for message in messages):
            self.check(display_num_errors=True)
        for message in messages:
            logger.warning(message.msg, check=message.id, hint=message.hint)

    def _prepare_database(self, *, is_migrated_here: bool) -> None:
        seconds = settings.DATABASE_WAIT_SECONDS
        try:
            wait_for_database(seconds=seconds, say=self._say)
            self.check(tags=[Tags.database], databases=[DEFAULT_DB_ALIAS])
            if is_migrated_here:
                migrate(seconds=seconds, say=self._say)
            else:
                wait_for_schema(seconds=seconds, say=self._say)
        except (UnsuitableDatabase, WaitedTooLong) as error:
            raise CommandError(str(error)) from None

    def _prepare_static_files(self) -> None:
        if not settings.ARE_STATIC_FILES_COLLECTED:
            collect_static_files()
        elif not (settings.STATIC_ROOT / "staticfiles.json").is_file():
            raise CommandError(
                f"STATIC_ROOT is set, but {settings.STATIC_ROOT} holds no collected files. "
                "Run manage.py collectstatic, or leave STATIC_ROOT unset."
            )

    def _reserve_port(self) -> list[socket.socket]:
        """Bind a socket for each web worker.

        A server whose parent was killed is about to release the port.
        """
        deadline = time.monotonic() + PORT_WAIT_SECONDS
        while True:
            try:
                return reserve(settings.BIND, settings.PORT, count=settings.WEB_WORKERS)
            except OSError as error:
                if time.monotonic() >= deadline:
                    raise CommandError(
                        f"Cannot listen on {settings.BIND}:{settings.PORT}: {error.strerror}. "
                        "Set PORT or BIND to another address."
                    ) from None
            time.sleep(0.1)

    def _say(self, line: str) -> None:
        self.stderr.write(f"moonhook: {line}")
        self.stderr.flush()

    def _log_start(self, names: Sequence[str], missing_layers: Sequence[Layer]) -> None:
        logger.info("Serving", services=list(names), admin=f"{settings.PUBLIC_URL}/admin/")
        for layer in missing_layers:
            logger.warning("Sandbox layer not active", layer=layer.name, detail=layer.detail)

    def _greet(
        self, names: Sequence[str], demo: Demo | None, missing_layers: Sequence[Layer]
    ) -> None:
        lines = ["", f"Moonhook: {', '.join(names)}"]
        if "web" in names:
            lines += [f"  admin     {settings.PUBLIC_URL}/admin/"]
        if demo is not None:
            lines += [
                f"  e-mail    {demo.email}",
                f"  password  {demo.password}   (shown only once)",
                "",
                "  Call the demo hook (its token, too, is shown only once):",
                "",
                f"  curl {demo.call_url} -d '{PAYLOAD}'",
            ]
        if not settings.IS_EMAIL_CONFIGURED:
            lines += ["", f"  EMAIL_URL is not set: e-mails are written to {settings.OUTBOX_DIR}"]
        if settings.SMS_URL is None:
            lines += [f"  SMS_URL is not set: SMS are written to {settings.OUTBOX_DIR}"]
        lines += [
            f"  The sandbox's {layer.name} layer is not active: {layer.detail}"
            for layer in missing_layers
        ]
        self.stdout.write("\n".join([*lines, "", "  Ctrl-C stops everything.", ""]))
        self.stdout.flush()


def _names(requested: Sequence[str]) -> list[str]:
    """Return the names in start order. Raise ``CommandError`` for unknown names."""
    known = services()
    if unknown := set(requested) - set(known):
        raise CommandError(
            f"Unknown service: {', '.join(sorted(unknown))}. Services: {', '.join(known)}."
        )
    return [name for name in known if name in requested or not requested]


def collect_static_files() -> None:
    """Collects and compresses them, which takes seconds, unless they are those of the last time."""
    record = settings.DATA_DIR / "static.sha256"
    present = _digest_of_sources()
    is_collected = (settings.STATIC_ROOT / "staticfiles.json").is_file()
    if is_collected and record.is_file() and record.read_text() == present:
        return
    call_command("collectstatic", interactive=False, verbosity=0)
    record.write_text(present)


def _digest_of_sources() -> str:
    """Names, sizes and times of all files that would be collected."""
    files = []
    for finder in get_finders():
        for name, storage in finder.list(None):
            path = Path(storage.path(name))
            status = path.stat()
            files.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(files).encode()).hexdigest()
