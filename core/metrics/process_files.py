"""The metrics files of this node's processes, named after their process ids, safe on a full disk.

prometheus_client maps sparse files into memory. On a full disk, writing to a page without disk
space kills the process with SIGBUS, which would end every web worker and each of its successors.
These files reserve their space first; without space, the numbers stay in the process's memory.
"""

import atexit
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from prometheus_client import mmap_dict, values

from core.metrics import ARE_METRICS_ON

logger = structlog.get_logger(__name__)

_INITIAL_BYTES = 64 * 1024
# An entry without its key: a length, padding and two numbers.
_ENTRY_BYTES = 4 + 8 + 16
_kept_process_id = 0


class NumberFile(mmap_dict.MmapedDict):
    _f: Any
    _m: Any
    _used: int
    _capacity: int

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if not read_mode and not _is_reserved(filename):
            _warn(filename)
            memory = _memory(_INITIAL_BYTES)
            filename = f"/proc/self/fd/{memory}"
            super().__init__(filename)
            os.close(memory)
            return
        super().__init__(filename, read_mode)

    def _init_value(self, key: str) -> None:
        """Adds an entry, after doubling the file as often as needed."""
        needed = self._used + len(key.encode()) + _ENTRY_BYTES
        capacity = self._capacity
        while capacity < needed:
            capacity *= 2
        if capacity > self._capacity:
            self._grow(capacity)
        super()._init_value(key)

    def _grow(self, capacity: int) -> None:
        try:
            os.posix_fallocate(self._f.fileno(), 0, capacity)
        except OSError:
            _warn(self._f.name)
            memory = _memory(capacity)
            os.pwrite(memory, self._m[: self._used], 0)
            self._f.close()
            self._f = os.fdopen(memory, "r+b")
        self._m = mmap.mmap(self._f.fileno(), capacity)
        self._capacity = capacity


def _is_reserved(filename: str) -> bool:
    """Whether the file exists and all of its space is reserved."""
    try:
        with open(filename, "a+b") as file:
            size = max(os.fstat(file.fileno()).st_size, _INITIAL_BYTES)
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError:
        # An empty file would make the process that adds up the files fail.
        with suppress(OSError):
            if not Path(filename).stat().st_size:
                Path(filename).unlink()
        return False
    return True


def _memory(size: int) -> int:
    descriptor = os.memfd_create("moonhook-metrics")
    os.ftruncate(descriptor, size)
    return descriptor


def _warn(filename: str) -> None:
    logger.warning(
        "No disk space for the metrics of this process; /metrics lacks them", file=filename
    )


def install() -> None:
    """Makes prometheus_client use ``NumberFile``."""
    values.MmapedDict = NumberFile  # type: ignore[attr-defined]


def prepare() -> None:
    """Makes room for the files of this process. Called before the first metric is created.

    A process that keeps no files, such as a command, deletes them when it ends.
    """
    install()
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


def delete_gauges(process_id: int) -> None:
    """Deletes the gauges of a process that has ended; its counters stay."""
    if ARE_METRICS_ON:
        for path in settings.METRICS_DIR.glob(f"gauge_live*_{process_id}.db"):
            path.unlink(missing_ok=True)
