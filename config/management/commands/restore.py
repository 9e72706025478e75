import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.database.backup import (
    BackupError,
    is_database_empty,
    require_backup,
    require_unused,
    restore,
)

NOTHING_CHANGED = "Nothing was changed."


class Command(BaseCommand):
    requires_system_checks = ()
    help = "Replaces the whole database by a backup, or leaves it as it is. Stop Moonhook first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a file that manage.py backup has written")
        parser.add_argument("--yes", action="store_true", help="replace a database without asking")

    def handle(self, *args: Any, **options: Any) -> None:
        source: Path = options["file"]
        try:
            require_backup(source)
            require_unused()
            if not options["yes"] and not is_database_empty():
                self._confirm()
            restore(source, self._say)
        except BackupError as error:
            raise CommandError(f"{error}. {NOTHING_CHANGED}") from None
        self.stdout.write(f"restore: {source} is the database now. Run manage.py migrate next.")

    def _confirm(self) -> None:
        if not sys.stdin.isatty():
            raise CommandError(
                f"This replaces all data of the database. Use --yes to do so. {NOTHING_CHANGED}"
            )
        answer = input("This replaces all data of the database. Type yes to continue: ")
        if answer.strip() != "yes":
            raise CommandError(NOTHING_CHANGED)

    def _say(self, line: str) -> None:
        sys.stderr.write(f"restore: {line}\n")
        sys.stderr.flush()
