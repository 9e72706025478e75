import os
import socket
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.crypto import get_random_string
from django_tasks import DEFAULT_TASK_BACKEND_ALIAS

from core.tasks.worker import Worker


class Command(BaseCommand):
    """Replaces the command of the same name in django-tasks-db."""

    help = "Runs background tasks until stopped. Run any number of workers, on any machine."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--interval", type=float, default=1, help="seconds between checks of an empty queue"
        )
        parser.add_argument(
            "--batch", action="store_true", help="run the tasks that are due now, then exit"
        )
        parser.add_argument(
            "--no-startup-delay",
            action="store_false",
            dest="startup_delay",
            help="start at once; the default is a random delay of up to a second",
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
            worker_id=process_name(),
        )
        worker.configure_signals()
        worker.run()


def process_name() -> str:
    """Returns a unique name with the host and process id, which the admin shows with tasks."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{get_random_string(6)}"
