"""A fair queue of the writers of a SQLite database.

SQLite admits one writer at a time. The others retry after pauses of up to a tenth of a second, and
may lose to another writer each time; this queue serves them in order. It only improves fairness:
SQLite's lock protects the data, and a writer that cannot queue goes on to that lock.
"""

import fcntl
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from core import waiting
from core.waiting import WakeUp

# The pause between two attempts to lock a file that another process has locked.
RETRY_SECONDS = 0.001
# How long the threads of one process may write in a row while another process waits.
PROCESS_SLICE_SECONDS = 0.02


class WriteQueue:
    """Orders the threads of this process, and this process among others.

    While threads wait, the process keeps its file lock for ``PROCESS_SLICE_SECONDS``, and longer if
    no other process waits, because a handover takes at least ``RETRY_SECONDS``. One process at a
    time waits as the next, so no other can overtake it.

    The main thread counts as a process of its own. A signal handler may raise there between taking
    a turn and recording it, and the turn must still be ended. With a file lock that is safe,
    because unlocking a file that is not locked has no effect.
    """

    # After this wait the writer goes on to SQLite's lock, which has a timeout of its own.
    max_wait_seconds = 1.0

    def __init__(self, path: str, *, of_main_thread: bool = False) -> None:
        self._threads = None if of_main_thread else _FairLock()
        self._current = _FileLock(path)
        self._next = _FileLock(f"{path}-next")
        # When this process took the file lock; ``None`` while it does not hold it.
        self._locked_at: float | None = None

    def begin(self, kind: str = "") -> bool:
        """Wait for a turn and return whether it came in time; if so, call ``end`` afterwards.

        Kinds of writes take turns, so many writes of one kind do not delay another kind for long.
        """
        deadline = time.monotonic() + self.max_wait_seconds
        if self._threads is not None and not self._threads.take_by(deadline, kind):
            return False
        if self._locked_at is not None:
            return True
        try:
            has_begun = self._wait_for_other_processes(deadline)
        except OSError:
            # Without a lock file, for example in a read-only directory, there is no queue.
            has_begun = False
        if has_begun:
            self._locked_at = time.monotonic()
        elif self._threads is not None:
            self._threads.leave()
        return has_begun

    def end(self) -> None:
        if self._threads is None:
            self._leave_file_lock()
            return
        try:
            if not self._keeps_file_lock():
                self._leave_file_lock()
        finally:
            # The last thread that waited may have given up meanwhile.
            self._threads.leave(before_free=self._leave_file_lock)

    def _leave_file_lock(self) -> None:
        self._locked_at = None
        self._current.leave()

    def _keeps_file_lock(self) -> bool:
        """Whether the next thread of this process may write before other processes."""
        if self._threads is None or self._locked_at is None or not self._threads.is_awaited():
            return False
        if time.monotonic() - self._locked_at < PROCESS_SLICE_SECONDS:
            return True
        if self._next.take_by(0):
            self._next.leave()
            return True
        return False

    def _wait_for_other_processes(self, deadline: float) -> bool:
        if not self._next.take_by(deadline):
            return False
        try:
            return self._current.take_by(deadline)
        finally:
            self._next.leave()


class _FairLock:
    """A lock for threads that kinds of writes take in turn, first come first served within a kind.

    ``threading.Lock`` is not fair: a thread that writes without a pause takes it again before a
    waiting one wakes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        # Each thread is woken on its turn. The first kind is the next; kinds without waiting
        # threads have no entry.
        self._waiting: OrderedDict[str, deque[WakeUp]] = OrderedDict()

    def take_by(self, deadline: float, kind: str) -> bool:
        """Wait for the lock and return whether it came in time."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return True
            handed_over = WakeUp()
            self._waiting.setdefault(kind, deque()).append(handed_over)
        if handed_over.wait(max(0, deadline - time.monotonic())):
            return True
        with self._lock:
            waiting = self._waiting.get(kind, ())
            if handed_over not in waiting:
                # Handed over just after the timeout.
                return True
            self._waiting[kind].remove(handed_over)
            if not self._waiting[kind]:
                del self._waiting[kind]
        return False

    def is_awaited(self) -> bool:
        return bool(self._waiting)

    def leave(self, before_free: Callable[[], None] = lambda: None) -> None:
        """Hand the lock over; if nobody waits, call ``before_free`` and release it."""
        with self._lock:
            if not self._waiting:
                try:
                    before_free()
                finally:
                    self._is_taken = False
                return
            kind, waiting = self._waiting.popitem(last=False)
            waiting.popleft().set()
            if waiting:
                self._waiting[kind] = waiting


class _FileLock:
    """A lock for processes on a file, which the system releases when its process ends."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None

    def take_by(self, deadline: float) -> bool:
        """Wait for the lock and return whether it came in time."""
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o600)
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
                waiting.sleep(RETRY_SECONDS)
            else:
                return True

    def leave(self) -> None:
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)


_queues: dict[tuple[str, bool], WriteQueue] = {}
# A forked child shares its parent's open files, and with them its locks.
os.register_at_fork(after_in_child=_queues.clear)


def write_queue_of(database: str, *, of_main_thread: bool = False) -> WriteQueue:
    """The queue of the database file at that path, shared by the process."""
    key = (database, of_main_thread)
    queue = _queues.get(key)
    if queue is None:
        made = WriteQueue(f"{database}-writers", of_main_thread=of_main_thread)
        queue = _queues.setdefault(key, made)
    return queue
