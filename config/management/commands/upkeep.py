import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.upkeep import do_upkeep


class Command(BaseCommand):
    help = (
        "Sends due notices and deletes expired rows, once; the jobs runner does so every ten "
        "minutes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exits with status 1 if a duty failed."""
        upkeep = do_upkeep()
        if options["json"]:
            self.stdout.write(json.dumps({"done": upkeep.done, "failed": upkeep.failed}))
        else:
            for name, count in upkeep.done.items():
                self.stdout.write(f"{name}: {count}")
            for name in upkeep.failed:
                self.stdout.write(f"{name}: failed, see the log")
        sys.exit(1 if upkeep.failed else 0)
