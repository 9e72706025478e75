import signal
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.database.rehearsal import RehearsalError, Rehearsed, rehearse

UNCHANGED = "The database is unchanged, and the copy is removed."

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Command(BaseCommand):
    help = (
        "Runs the pending migrations on a copy of the database, which is then removed. Shows how "
        "long each one takes and which tables it locks."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        # A service manager's signal removes the copy, too.
        before = {number: signal.signal(number, _stop) for number in STOPPING}
        try:
            count = rehearse(self._show)
        except RehearsalError as error:
            raise CommandError(f"{error}. {UNCHANGED}") from None
        except KeyboardInterrupt as interruption:
            (number,) = interruption.args
            raise CommandError(f"Interrupted. {UNCHANGED}", returncode=128 + number) from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.stdout.write(
            f"{count} migrations can be applied. {UNCHANGED}" if count else "Nothing to migrate."
        )

    def _show(self, rehearsed: Rehearsed) -> None:
        for line in rehearsed.lines:
            self.stdout.write(line)
        self.stdout.flush()


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)
