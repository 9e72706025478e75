import json
import sys
import time
from argparse import ArgumentParser
from itertools import count
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections

from config.operations.upkeep import DUTIES, MINUTELY, do_upkeep
from core.metrics.processes import announce

MINUTE_SECONDS = 60
MINUTES_A_ROUND = 10


class Command(BaseCommand):
    help = (
        "Sends due notices and deletes expired rows, every ten minutes; looks for failing scripts "
        "every minute."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="run once and exit")
        parser.add_argument(
            "--json", action="store_true", help="with --once: print one JSON object"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            self._once(as_json=options["json"])
        announce("upkeep")
        for minute in count():
            do_upkeep(MINUTELY if minute % MINUTES_A_ROUND else DUTIES)
            close_old_connections()
            time.sleep(MINUTE_SECONDS)

    def _once(self, *, as_json: bool) -> None:
        """Run once; exit with status 1 if a duty failed."""
        upkeep = do_upkeep()
        if as_json:
            self.stdout.write(json.dumps({"done": upkeep.done, "failed": upkeep.failed}))
        else:
            for name, count in upkeep.done.items():
                self.stdout.write(f"{name}: {count}")
            for name in upkeep.failed:
                self.stdout.write(f"{name}: failed, see the log")
        sys.exit(1 if upkeep.failed else 0)
