import os
import socket
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.crypto import get_random_string
from django_tasks import DEFAULT_TASK_BACKEND_ALIAS

from core.tasks.worker import Worker


class Command(BaseCommand):
    """In the place of the library's command of that name."""

    help = "Does background work until it is stopped. Any number at once, on any machine."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--interval", type=float, default=1, help="seconds between looks at an empty queue"
        )
        parser.add_argument("--batch", action="store_true", help="do what is due now, and end")
        parser.add_argument(
            "--no-startup-delay",
            action="store_false",
            dest="startup_delay",
            help="begin at once; otherwise within a second, so that many do not begin together",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        worker = Worker(
            queue_names=["*"],
            excluded_queue_names=[],
            backend_name=DEFAULT_TASK_BACKEND_ALIAS,
            interval=options["interval"],
            batch=options["batch"],
            startup_delay=options["startup_delay"],
            max_tasks=None,
            worker_id=name_of_this_process(),
        )
        worker.configure_signals()
        worker.run()


def name_of_this_process() -> str:
    """Unique, and says where it runs: the admin shows it beside its tasks."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{get_random_string(6)}"
