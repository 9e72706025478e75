"""``make run`` runs this command; images and systemd units run it with names of services."""

import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import structlog
from django.conf import settings
from django.core.checks import Tags, run_checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DEFAULT_DB_ALIAS, connections

from config.operations.demo import PAYLOAD, Demo, create_demo_once
from core.database.startup import WaitedTooLong, migrate, wait_for_database, wait_for_schema
from core.metrics.process_files import delete_all, delete_gauges
from core.server.listeners import reserve
from core.server.supervised_service import RestartPolicy, Service
from core.server.supervisor import Supervisor
from scripts_engine.lockdown_policy import require_lockdown
from scripts_engine.sandbox.parent.layers import Layer
from scripts_engine.sandbox_pool import sandbox_pool

logger = structlog.get_logger(__name__)

# How long to wait for a port that another server is about to release.
PORT_WAIT_SECONDS = 3


def _python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


SERVICES = {
    "web": Service(
        "web server",
        _python("-m", "core.server", "-c", "config/gunicorn.conf.py"),
        reload_signal=signal.SIGHUP,
        attempts_to_serve=3,
    ),
    "worker": Service(
        "background worker",
        _python("manage.py", "db_worker", "--interval", "0.5", "--no-startup-delay"),
    ),
    "queue": Service("queue runner", _python("manage.py", "run_queue")),
    "upkeep": Service("upkeep", _python("manage.py", "upkeep")),
}


class Command(BaseCommand):
    requires_system_checks = ()
    help = "Prepares the database and runs all services, or those that are named."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "services",
            nargs="*",
            metavar="service",
            help=f"{', '.join(SERVICES)}; default: all",
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
        # Reserved for the lifetime of this process.
        port = self._reserve_port() if "web" in names else None
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
        self._check_system()
        missing_layers = require_lockdown() if {"web", "queue"} & set(names) else ()
        self._prepare_database(is_migrated_here=not options["no_migrate"])
        if "web" in names:
            self._prepare_static_files()
        wants_demo = "web" in names and not settings.IS_PRODUCTION and not options["no_demo"]
        demo = create_demo_once() if wants_demo else None
        sandbox_pool().close()
        _close_database_connections()
        if "web" in names:
            delete_all()
        if settings.IS_LOG_JSON:
            self._log_start(names, missing_layers)
        if demo is not None or not settings.IS_LOG_JSON:
            self._greet(names, demo, missing_layers)
        status = Supervisor(
            [SERVICES[name] for name in names],
            directory=settings.BASE_DIR,
            grace_seconds=settings.DRAIN_SECONDS + settings.GRACEFUL_TIMEOUT_SECONDS,
            policy=RestartPolicy(leftovers_seconds=settings.GRACEFUL_TIMEOUT_SECONDS),
            on_end=delete_gauges,
        ).run()
        if port is not None:
            port.close()
        sys.exit(status)

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
        except WaitedTooLong as error:
            raise CommandError(str(error)) from None

    def _prepare_static_files(self) -> None:
        if not settings.ARE_STATIC_FILES_COLLECTED:
            call_command("collectstatic", interactive=False, verbosity=0)
        elif not (settings.STATIC_ROOT / "staticfiles.json").is_file():
            raise CommandError(
                f"STATIC_ROOT is set, but {settings.STATIC_ROOT} holds no collected files. "
                "Run manage.py collectstatic, or leave STATIC_ROOT unset."
            )

    def _reserve_port(self) -> socket.socket:
        """Reserve the port: web workers share it, and could share it with another server unnoticed.

        A server whose parent was killed is about to release it.
        """
        deadline = time.monotonic() + PORT_WAIT_SECONDS
        while True:
            try:
                return reserve(settings.BIND, settings.PORT)
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
    if unknown := set(requested) - set(SERVICES):
        raise CommandError(
            f"Unknown service: {', '.join(sorted(unknown))}. Services: {', '.join(SERVICES)}."
        )
    return [name for name in SERVICES if name in requested or not requested]


def _close_database_connections() -> None:
    """Close connections and pools, which the parent of the services does not need."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if connection.vendor == "postgresql":
            connection.close_pool()  # type: ignore[attr-defined]
