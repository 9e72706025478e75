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
    """Those of one process among themselves, and one of them with those of other processes.

    Of the processes, one at a time waits as the next: a process whose threads write without a
    pause cannot come again before it.
    """

    # Then it asks SQLite all the same, which has a patience of its own.
    patience_seconds = 1.0

    def __init__(self, path: str) -> None:
        self._turn = threading.Lock()
        self._now = _Place(path)
        self._next = _Place(f"{path}-next")

    def begin(self) -> bool:
        """Whether its turn has come in time; then it must ``end``.

        Not for the main thread: an exception that a signal raises there could come between.
        """
        deadline = time.monotonic() + self.patience_seconds
        if not self._turn.acquire(timeout=self.patience_seconds):
            return False
        try:
            has_begun = self._wait_for_other_processes(deadline)
        except OSError:
            # Where there can be no such file there is no queue.
            has_begun = False
        if not has_begun:
            self._turn.release()
        return has_begun

    def end(self) -> None:
        try:
            self._now.leave()
        finally:
            self._turn.release()

    def _wait_for_other_processes(self, deadline: float) -> bool:
        if not self._next.take_by(deadline):
            return False
        try:
            return self._now.take_by(deadline)
        finally:
            self._next.leave()


class _Place:
    """What one process at a time may have, by a lock on a file. It leaves when it dies."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None

    def take_by(self, deadline: float) -> bool:
        """Whether it came free in time."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o600)
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(PAUSE_SECONDS)
            else:
                return True

    def leave(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)


_by_database: dict[str, Writers] = {}
# An open file is shared with the parent, and so would be its turn.
os.register_at_fork(after_in_child=_by_database.clear)


def writers_of(database: str) -> Writers:
    """Of the file of that path."""
    writers = _by_database.get(database)
    if writers is None:
        writers = _by_database.setdefault(database, Writers(f"{database}-writers"))
    return writers
