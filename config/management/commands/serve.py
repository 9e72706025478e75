"""What ``make run`` calls."""

import os
import socket
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import structlog
from django.conf import settings
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from config.demo import PAYLOAD, Demo, create_demo_once
from config.scrape.files import start_empty
from config.supervisor import Service, Supervisor
from scripts_engine.lockdown_policy import require_lockdown
from scripts_engine.sandbox.layers import Layer
from scripts_engine.sandbox_pool import sandbox_pool

logger = structlog.get_logger(__name__)


class Command(BaseCommand):
    requires_system_checks = ()
    help = "Prepares the database and serves: gunicorn and the background worker together."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--no-demo", action="store_true", help="make no demo organisation on the first start"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # Whatever is made from here on is nobody else's to read: database, secrets, outbox.
        os.umask(0o077)
        self._require_free_port()
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True)
        self._check_system()
        missing_layers = require_lockdown()
        call_command("migrate", interactive=False, verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        wants_demo = not settings.IS_PRODUCTION and not options["no_demo"]
        demo = create_demo_once() if wants_demo else None
        sandbox_pool().close()
        start_empty()
        if settings.IS_LOG_JSON:
            self._log_start(missing_layers)
        if demo is not None or not settings.IS_LOG_JSON:
            self._greet(demo, missing_layers)
        sys.exit(
            Supervisor(
                [
                    Service(
                        "web server", _python("-m", "gunicorn", "-c", "config/gunicorn.conf.py")
                    ),
                    Service(
                        "background worker", _python("manage.py", "db_worker", *_WORKER_OPTIONS)
                    ),
                    Service("upkeep", _python("manage.py", "upkeep")),
                ],
                directory=settings.BASE_DIR,
                grace_seconds=settings.GRACEFUL_TIMEOUT_SECONDS,
            ).run()
        )

    def _check_system(self) -> None:
        """As every command does it, but what is no error goes to the log."""
        messages = [message for message in run_checks() if not message.is_silenced()]
        if any(message.is_serious() for message in messages):
            self.check(display_num_errors=True)
        for message in messages:
            logger.warning(message.msg, check=message.id, hint=message.hint)

    def _require_free_port(self) -> None:
        """Web workers share their port, and would share it with another server unnoticed."""
        try:
            family, *_, address = socket.getaddrinfo(
                settings.BIND, settings.PORT, type=socket.SOCK_STREAM
            )[0]
            with socket.create_server(address[:2], family=family):
                return
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {settings.BIND}:{settings.PORT}: {error.strerror}. "
                "Set PORT or BIND to another address."
            ) from None

    def _log_start(self, missing_layers: Sequence[Layer]) -> None:
        logger.info("Serving", admin=f"{settings.PUBLIC_URL}/admin/")
        for layer in missing_layers:
            logger.warning("Sandbox layer not active", layer=layer.name, detail=layer.detail)

    def _greet(self, demo: Demo | None, missing_layers: Sequence[Layer]) -> None:
        lines = ["", "Moonhook", f"  admin     {settings.PUBLIC_URL}/admin/"]
        if demo is not None:
            lines += [
                f"  e-mail    {demo.email}",
                f"  password  {demo.password}   (shown this once)",
                "",
                "  Call the demo's hook (its token too is shown this once):",
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


_WORKER_OPTIONS = ("--interval", "0.5", "--no-startup-delay")


def _python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]
