"""The writers of a database take turns.

SQLite lets one write at a time. Whoever comes meanwhile asks again after pauses that grow to a
tenth of a second, and may find somebody else there each time; whoever queues here comes next. It
is a courtesy: what keeps writers apart is SQLite's own lock, and who cannot queue goes on to it.
"""

import fcntl
import os
import threading
import time
from collections import OrderedDict, deque

# Between two looks whether another process is still at it.
PAUSE_SECONDS = 0.001
# For so long the threads of one process may write one after the other while another one waits.
KEPT_SECONDS = 0.02


class Writers:
    """The threads of one process in a fair order, and this process among others.

    While threads wait, the process keeps its place among the others for ``KEPT_SECONDS``, and
    longer if none of them waits: to change hands takes a wait of ``PAUSE_SECONDS`` at least. Of
    the processes, one at a time waits as the next: none can come again before it.

    The main thread is as a process of its own: a signal may raise there at any moment, and whoever
    is interrupted between taking a turn and knowing of it must be able to end it all the same. A
    lock on a file allows that: to unlock what is not locked changes nothing.
    """

    # Then it asks SQLite all the same, which has a patience of its own.
    patience_seconds = 1.0

    def __init__(self, path: str, *, of_main_thread: bool = False) -> None:
        self._turn = None if of_main_thread else _Turn()
        self._now = _Place(path)
        self._next = _Place(f"{path}-next")
        # Since when this process has had its place among the others; None: it has not.
        self._since: float | None = None

    def begin(self, kind: str = "") -> bool:
        """Whether its turn has come in time; then it must ``end``.

        Many writes of one kind hold up one of another kind no longer than a few do.
        """
        deadline = time.monotonic() + self.patience_seconds
        if self._turn is not None and not self._turn.take_by(deadline, kind):
            return False
        if self._since is not None:
            return True
        try:
            has_begun = self._wait_for_other_processes(deadline)
        except OSError:
            # Where there can be no such file there is no queue.
            has_begun = False
        if has_begun:
            self._since = time.monotonic()
        elif self._turn is not None:
            self._turn.leave()
        return has_begun

    def end(self) -> None:
        try:
            if not self._may_go_on():
                self._since = None
                self._now.leave()
        finally:
            if self._turn is not None:
                self._turn.leave()

    def _may_go_on(self) -> bool:
        """Whether the next thread of this process may come before other processes."""
        if self._turn is None or self._since is None or not self._turn.is_awaited():
            return False
        if time.monotonic() - self._since < KEPT_SECONDS:
            return True
        if self._next.take_by(0):
            self._next.leave()
            return True
        return False

    def _wait_for_other_processes(self, deadline: float) -> bool:
        if not self._next.take_by(deadline):
            return False
        try:
            return self._now.take_by(deadline)
        finally:
            self._next.leave()


class _Turn:
    """What one thread at a time may have. Kinds of writes take turns, each first come first served.

    ``threading.Lock`` is not fair: a thread that writes without a pause takes it again before a
    waiting one wakes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        # Each waits at a lock that is released when the turn is its own. The kind whose turn is
        # next stands first; without waiting threads it is not there.
        self._waiting: OrderedDict[str, deque[threading.Lock]] = OrderedDict()

    def take_by(self, deadline: float, kind: str) -> bool:
        """Whether it came in time."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            handed_over = threading.Lock()
            handed_over.acquire()
            self._waiting.setdefault(kind, deque()).append(handed_over)
        if handed_over.acquire(timeout=max(0, deadline - time.monotonic())):
            return True
        with self._lock:
            waiting = self._waiting.get(kind, ())
            if handed_over not in waiting:
                # It came at the last moment.
                return True
            self._waiting[kind].remove(handed_over)
            if not self._waiting[kind]:
                del self._waiting[kind]
        return False

    def is_awaited(self) -> bool:
        return bool(self._waiting)

    def leave(self) -> None:
        with self._lock:
            if not self._waiting:
                self._is_taken = False
                return
            kind, waiting = self._waiting.popitem(last=False)
            waiting.popleft().release()
            if waiting:
                self._waiting[kind] = waiting


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


_by_database: dict[tuple[str, bool], Writers] = {}
# An open file is shared with the parent, and so would be its turn.
os.register_at_fork(after_in_child=_by_database.clear)


def writers_of(database: str, *, of_main_thread: bool = False) -> Writers:
    """Of the file of that path."""
    key = (database, of_main_thread)
    writers = _by_database.get(key)
    if writers is None:
        made = Writers(f"{database}-writers", of_main_thread=of_main_thread)
        writers = _by_database.setdefault(key, made)
    return writers
