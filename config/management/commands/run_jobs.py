import signal
import threading
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from core.metrics.processes import announce
from core.upkeep import keep_up
from jobs.messages.runner import MessageRunner
from jobs.queue.runner import Runner
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.sandbox_pool import (
    PoolSize,
    fit_to_open_files,
    pool_size,
    require_lockdown,
    sandbox_pool,
    set_pool_size,
)

# How late a schedule's run may start.
TICK_SECONDS = 1.0


class Command(BaseCommand):
    help = (
        "Works the queue, starts schedules' runs, sends messages and does the upkeep, until it is "
        "stopped."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--slots",
            type=int,
            default=settings.QUEUE_SLOTS,
            help="runs at once; default: QUEUE_SLOTS",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        require_lockdown()
        announce("jobs")
        # An organisation alone may use all slots of the queue, but only half of a pool's.
        configured = pool_size()
        slots = max(configured.slots, 2 * options["slots"])
        set_pool_size(PoolSize(slots, max(configured.processes, slots)))
        fit_to_open_files()
        runner = Runner(options["slots"], duties=((run_due_schedules, TICK_SECONDS),))
        messages, stopping = MessageRunner(), threading.Event()
        sending = threading.Thread(target=messages.run, name="messages", daemon=True)
        upkeep = threading.Thread(target=keep_up, args=(stopping,), name="upkeep", daemon=True)

        def give_up() -> None:
            messages.abandon()
            runner.abandon()
            # The next attempts are due in some seconds: by then, these have stopped.
            sandbox_pool().close()

        def stop(number: int, frame: FrameType | None) -> None:
            # Work in progress gets this long to end, before the supervisor loses its patience.
            timer = threading.Timer(settings.GRACEFUL_TIMEOUT_SECONDS - 2, give_up)
            timer.daemon = True
            timer.start()
            stopping.set()
            messages.stop()
            runner.stop()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        sending.start()
        upkeep.start()
        runner.run()
        sending.join()
        sandbox_pool().close()
