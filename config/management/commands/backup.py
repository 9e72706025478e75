import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.database.backup import BackupError, back_up


class Command(BaseCommand):
    help = (
        "Writes the whole database to a file, also while Moonhook is running. The keys are not in "
        "it: keep MOONHOOK_PEPPERS and SECRET_KEY elsewhere."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="the file to write, with mode 0600")
        parser.add_argument("--yes", action="store_true", help="replace an existing file")

    def handle(self, *args: Any, **options: Any) -> None:
        target: Path = options["file"]
        if target.exists() and not options["yes"]:
            raise CommandError(f"{target} exists. Use --yes to replace it. Nothing was changed.")
        try:
            back_up(target, self._say)
        except BackupError as error:
            raise CommandError(f"No backup was made: {error}.") from None
        self.stdout.write(f"backup: {target}, {target.stat().st_size >> 10:,} KiB")

    def _say(self, line: str) -> None:
        sys.stderr.write(f"backup: {line}\n")
        sys.stderr.flush()
