"""The writers of a database take turns.

SQLite lets one write at a time. Whoever comes meanwhile asks again after pauses that grow to a
tenth of a second, and may find somebody else there each time; whoever queues here comes next. It
is a courtesy: what keeps writers apart is SQLite's own lock, and who cannot queue goes on to it.
"""

import fcntl
import os
import threading
import time

# Between two looks whether another process is still at it.
PAUSE_SECONDS = 0.001


class Writers:
    """Those of one process among themselves, and one of them with those of other processes."""

    # Then it asks SQLite all the same, which has a patience of its own.
    patience_seconds = 1.0

    def __init__(self, path: str) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._file: int | None = None

    def begin(self) -> bool:
        """Whether its turn has come in time; then it must ``end``.

        Not for the main thread: an exception that a signal raises there could come between.
        """
        deadline = time.monotonic() + self.patience_seconds
        if not self._turn.acquire(timeout=self.patience_seconds):
            return False
        try:
            while not self._is_ahead_of_other_processes():
                if time.monotonic() >= deadline:
                    self._turn.release()
                    return False
                time.sleep(PAUSE_SECONDS)
        except OSError:
            # Where there can be no such file there is no queue.
            self._turn.release()
            return False
        return True

    def end(self) -> None:
        try:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._turn.release()

    def _is_ahead_of_other_processes(self) -> bool:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_by_database: dict[str, Writers] = {}
# An open file is shared with the parent, and so would be its turn.
os.register_at_fork(after_in_child=_by_database.clear)


def writers_of(database: str) -> Writers:
    """Of the file of that path."""
    writers = _by_database.get(database)
    if writers is None:
        writers = _by_database.setdefault(database, Writers(f"{database}-writers"))
    return writers
