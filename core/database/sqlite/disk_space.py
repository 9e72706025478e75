"""Returns the free pages of a SQLite database to the file system.

SQLite keeps the pages of deleted rows in its file. A database with ``auto_vacuum`` can give them
back in small steps; one that was created without it must be rewritten by ``VACUUM`` first.
https://www.sqlite.org/pragma.html#pragma_auto_vacuum
"""

import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection

# Has an effect only before the first table, and on the next VACUUM. It must also come before the
# journal mode, which writes the file's first page. On a database that has it already, it would
# cost each connection a write.
RETURN_FREE_PAGES = "PRAGMA auto_vacuum = INCREMENTAL"
# In pages, usually of 4 KiB. A step takes some milliseconds, during which other writers wait.
STEP_PAGES = 100
# Upkeep leaves free pages that new rows will need soon: a tenth, but at least so many.
KEPT_SHARE = 10
KEPT_PAGES = 1000
# The pause after a step, as a multiple of its duration.
PAUSE_FACTOR = 1.0
_INCREMENTAL = 2
_CHECKPOINT_ATTEMPTS = 200
_WATCH_SECONDS = 0.1

Say = Callable[[str], object]


class NotEnoughRoom(Exception):
    """The disk has too little space for a second copy; the message says how much is needed."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of the database file."""

    total: int
    free: int
    size_bytes: int
    can_return: bool

    @property
    def used_bytes(self) -> int:
        return (self.total - self.free) * self.size_bytes


def pages() -> Pages:
    total, free, size = (_pragma(name) for name in ("page_count", "freelist_count", "page_size"))
    return Pages(total, free, size, _pragma("auto_vacuum") == _INCREMENTAL)


def return_free_pages() -> int:
    """A duty of upkeep: returns pages beyond those kept for new rows, and their number.

    Does nothing on PostgreSQL, and on a database that needs ``manage.py compact`` first.
    """
    if connection.vendor != "sqlite":
        return 0
    now = pages()
    kept = max(KEPT_PAGES, now.total // KEPT_SHARE)
    if not now.can_return or now.free <= kept:
        return 0
    return _return_all_but(kept)


def rewrite(say: Say) -> None:
    """Rewrites the whole database without free pages. Raises ``NotEnoughRoom``.

    Readers are not affected. Writers wait for the whole time, up to their own timeout.
    """
    before = pages()
    path = Path(connection.settings_dict["NAME"])
    # VACUUM writes a copy to a temporary file, and then the copy to the write-ahead log.
    needed = 2 * before.used_bytes
    if shutil.disk_usage(path.parent).free < needed:
        raise NotEnoughRoom(f"{path.parent} needs {needed >> 20} MiB of free space")
    # SQLite's own default is a directory for all users, which may be in memory.
    os.environ["SQLITE_TMPDIR"] = str(path.parent)
    is_over = threading.Event()
    watch = threading.Thread(target=_tell_progress, args=(path, before, say, is_over), daemon=True)
    connection.ensure_connection()
    database: Any = connection
    database.begin_turn("VACUUM")
    watch.start()
    try:
        execute = database.connection.execute
        database.execute_with_retry(execute, RETURN_FREE_PAGES, ())
        database.execute_with_retry(execute, "VACUUM", ())
    finally:
        database.end_turn()
        is_over.set()
        watch.join()


def return_all_free_pages(say: Say) -> int:
    """Returns every free page in small steps, and their number; callers wait for one step."""
    free = pages().free
    told = 0

    def tell(done: int) -> None:
        nonlocal told
        percent = min(100, 100 * done // max(1, free))
        if percent >= told + 10:
            told = percent
            say(f"{percent} %")

    returned = _return_all_but(0, tell)
    shrink_log()
    return returned


def shrink_log() -> bool:
    """Copies the write-ahead log into the database and empties it; readers may prevent it."""
    for _ in range(_CHECKPOINT_ATTEMPTS):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (is_busy, _, _) = cursor.fetchone()
        if not is_busy:
            return True
    return False


def _return_all_but(kept: int, on_step: Callable[[int], object] = lambda done: None) -> int:
    total = 0
    while True:
        began = time.monotonic()
        returned = _return_step(kept)
        if not returned:
            return total
        total += returned
        on_step(total)
        time.sleep(PAUSE_FACTOR * (time.monotonic() - began))


def _return_step(kept: int) -> int:
    before = _pragma("freelist_count")
    count = min(before - kept, STEP_PAGES)
    if count <= 0:
        return 0
    database: Any = connection
    database.begin_turn("incremental_vacuum")
    try:
        # It returns a row without columns for each page, of which ``execute`` fetches only one.
        pragma = f"PRAGMA incremental_vacuum({count})"
        database.execute_with_retry(
            lambda pragma, _: database.connection.executescript(pragma), pragma, ()
        )
    finally:
        database.end_turn()
    return before - _pragma("freelist_count")


def _pragma(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {name}")
        value: int = cursor.fetchone()[0]
    return value


def _tell_progress(path: Path, before: Pages, say: Say, is_over: threading.Event) -> None:
    """Says each tenth of what ``VACUUM`` has written; SQLite itself does not report it."""
    told, log = 0, Path(f"{path}-wal")
    log_before = log.stat().st_size if log.exists() else 0
    while not is_over.wait(_WATCH_SECONDS):
        in_log = max(0, log.stat().st_size - log_before) if log.exists() else 0
        written = (before.used_bytes if in_log else _temporary_bytes()) + in_log
        percent = min(99, 100 * written // max(1, 2 * before.used_bytes))
        if percent >= told + 10:
            told = percent
            say(f"{percent} %")


def _temporary_bytes() -> int:
    """The size of SQLite's temporary files, which have been unlinked."""
    total = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            if "etilqs_" in str(link.readlink()):
                total += link.stat().st_size
        except FileNotFoundError:
            # Closed meanwhile.
            continue
    return total
