import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from core.database.sqlite.disk_space import (
    NotEnoughRoom,
    pages,
    return_all_free_pages,
    rewrite,
    shrink_log,
)

# A conservative rate of VACUUM. Writers wait 20 seconds before they give up.
MIB_PER_SECOND = 20
LONGEST_WAIT_SECONDS = 10


class Command(BaseCommand):
    help = "Shrinks the file of the SQLite database; a server may be running."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--yes",
            action="store_true",
            help="rewrite the database even if calls have to wait for long",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "sqlite":
            raise CommandError(
                "compact is for SQLite. PostgreSQL's autovacuum makes the space of deleted rows "
                "available again. To shrink the files too, run VACUUM (FULL) on a table, which "
                "locks it meanwhile, or use pg_repack."
            )
        before, file_bytes = pages(), self._file_bytes()
        if before.can_return:
            return_all_free_pages(self._say)
        else:
            self._rewrite(before.used_bytes, is_confirmed=options["yes"])
        after = self._file_bytes()
        self.stdout.write(f"compact: {file_bytes >> 10:,} KiB before, {after >> 10:,} KiB now")

    def _rewrite(self, used_bytes: int, *, is_confirmed: bool) -> None:
        seconds = used_bytes / (MIB_PER_SECOND << 20)
        if seconds > LONGEST_WAIT_SECONDS and not is_confirmed:
            raise CommandError(
                f"{used_bytes >> 20} MiB must be rewritten once. Everything that writes "
                f"waits meanwhile, perhaps {seconds:.0f} seconds, and calls that wait for 20 "
                "seconds are refused with 503. Stop the server or choose a quiet hour, then run "
                "compact --yes. Nothing was changed."
            )
        try:
            rewrite(self._say)
        except NotEnoughRoom as error:
            raise CommandError(f"{error}. Nothing was changed.") from None
        if not shrink_log():
            self._say("the log is in use; its space is returned when the server restarts")

    def _file_bytes(self) -> int:
        name = Path(connection.settings_dict["NAME"])
        files = (name, Path(f"{name}-wal"))
        return sum(path.stat().st_size for path in files if path.exists())

    def _say(self, line: str) -> None:
        sys.stderr.write(f"compact: {line}\n")
        sys.stderr.flush()
