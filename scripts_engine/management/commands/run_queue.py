import signal
import threading
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from core.metrics.processes import announce
from scripts_engine.flows.queue.runner import Runner
from scripts_engine.flows.schedules.ticks import run_due_schedules
from scripts_engine.lockdown_policy import require_lockdown
from scripts_engine.open_files import fit_to_open_files
from scripts_engine.sandbox_pool import sandbox_pool

# How late a schedule's run may start.
TICK_SECONDS = 1.0


class Command(BaseCommand):
    help = "Works the queue and starts schedules' runs, until it is stopped."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--slots",
            type=int,
            default=settings.QUEUE_SLOTS,
            help="runs at once; default: QUEUE_SLOTS",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        require_lockdown()
        announce("queue")
        # An organisation alone may use all slots of the queue, but only half of a pool's.
        settings.SANDBOX_SLOTS = max(settings.SANDBOX_SLOTS, 2 * options["slots"])
        settings.SANDBOX_PROCESSES = max(settings.SANDBOX_PROCESSES, settings.SANDBOX_SLOTS)
        fit_to_open_files()
        runner = Runner(options["slots"], duties=((run_due_schedules, TICK_SECONDS),))

        def give_up() -> None:
            runner.abandon()
            # The next attempts are due in some seconds: by then, these have stopped.
            sandbox_pool().close()

        def stop(number: int, frame: FrameType | None) -> None:
            # Runs in progress get this long to end, before the supervisor loses its patience.
            timer = threading.Timer(settings.GRACEFUL_TIMEOUT_SECONDS - 2, give_up)
            timer.daemon = True
            timer.start()
            runner.stop()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        runner.run()
        sandbox_pool().close()
