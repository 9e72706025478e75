"""The metrics files of this node's processes, named after their process ids."""

import atexit
import os
import re
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from core.metrics import ARE_METRICS_ON, number_files

_PROCESS_ID = re.compile(r"_(\d+)\.db")
_kept_process_id = 0


def prepare() -> None:
    """Makes room for the files of this process. Called before the first metric is created.

    A process that keeps no files, such as a command, deletes them when it ends.
    """
    number_files.install()
    if ARE_METRICS_ON:
        # If this fails, the numbers stay in memory.
        with suppress(OSError):
            settings.METRICS_DIR.mkdir(parents=True, exist_ok=True)
        atexit.register(_delete_own_unless_kept)


def keep() -> None:
    """Keeps the files of this process after its end."""
    global _kept_process_id  # noqa: PLW0603
    _kept_process_id = os.getpid()


def _delete_own_unless_kept() -> None:
    process_id = os.getpid()
    if _kept_process_id != process_id:
        for path in settings.METRICS_DIR.glob(f"*_{process_id}.db"):
            path.unlink(missing_ok=True)


def delete_all() -> None:
    """Deletes every file. Called by the supervisor, before it starts the node's processes."""
    if ARE_METRICS_ON:
        for path in settings.METRICS_DIR.glob("*.db"):
            path.unlink()


def delete_those_of_dead_processes() -> None:
    """Keeps the files of live processes. Called by a web server without a supervisor."""
    if ARE_METRICS_ON:
        for path in settings.METRICS_DIR.glob("*.db"):
            if not _is_of_live_process(path):
                path.unlink(missing_ok=True)


def delete_gauges(process_id: int) -> None:
    """Deletes the gauges of a process that has ended; its counters stay."""
    if ARE_METRICS_ON:
        for path in settings.METRICS_DIR.glob(f"gauge_live*_{process_id}.db"):
            path.unlink(missing_ok=True)


def _is_of_live_process(path: Path) -> bool:
    match = _PROCESS_ID.search(path.name)
    if match is None:
        return False
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
