"""The writers of a database take turns.

SQLite lets one write at a time. Whoever comes meanwhile asks again after pauses that grow to a
tenth of a second, and may find somebody else there each time; whoever queues here is woken. It is
a courtesy: what keeps writers apart is SQLite's own lock.
"""

import fcntl
import os
import sqlite3
import threading


class Writers:
    """Those of one process among themselves, and whose turn it is with those of others."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._file: int | None = None

    def begin(self, patience_seconds: float) -> None:
        """Waits for its turn. Raises ``sqlite3.OperationalError``, as SQLite does.

        One of each process waits for the other processes, for as long as it takes.
        """
        if not self._turn.acquire(timeout=patience_seconds):
            raise sqlite3.OperationalError("database is locked")
        try:
            self._wait_for_other_processes()
        except BaseException as error:
            self._turn.release()
            if isinstance(error, OSError):
                raise sqlite3.OperationalError(str(error)) from error
            raise

    def _wait_for_other_processes(self) -> None:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o644)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def end(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._turn.release()


_by_database: dict[str, Writers] = {}
# An open file is shared with the parent, and so would be its turn.
os.register_at_fork(after_in_child=_by_database.clear)


def writers_of(database: str) -> Writers:
    """Of the file of that path."""
    writers = _by_database.get(database)
    if writers is None:
        writers = _by_database.setdefault(database, Writers(f"{database}-writers"))
    return writers
