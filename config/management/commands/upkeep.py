import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import close_old_connections

from config.scrape.files import announce
from config.upkeep import do_upkeep

EVERY_SECONDS = 600


class Command(BaseCommand):
    help = "Does what is due: notices, and forgetting what has expired. Every ten minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--once", action="store_true", help="do it now, and end")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            sys.exit(0 if do_upkeep() else 1)
        announce("upkeep")
        while True:
            do_upkeep()
            close_old_connections()
            time.sleep(EVERY_SECONDS)
