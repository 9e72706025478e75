"""The metrics files of this node's processes, named after their process ids."""

import os
import re
from pathlib import Path

from django.conf import settings

from core.metrics import ARE_METRICS_ON
from core.metrics.catalogue import PROCESSES
from core.metrics.instruments import INSTRUMENTS

_PROCESS_ID = re.compile(r"_(\d+)\.db")


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


def announce(process: str) -> None:
    """Registers this process under a name. Called by each process when it starts."""
    PROCESSES.set(1, process)


def export_zeros() -> None:
    """Exports every known number as 0."""
    for instrument in INSTRUMENTS:
        instrument.export_zeros()


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
