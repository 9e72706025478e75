"""The files in which each process keeps its numbers, named after its process id."""

import os
import re
from pathlib import Path

from django.conf import settings

from core.metrics import ARE_METRICS_ON
from core.metrics.catalogue import PROCESSES
from core.metrics.instruments import INSTRUMENTS

_PROCESS_ID = re.compile(r"_(\d+)\.db")


def start_empty() -> None:
    """For who starts every process of the node: nothing is left of the last time."""
    if ARE_METRICS_ON:
        for path in settings.METRICS_DIR.glob("*.db"):
            path.unlink()


def forget_the_dead() -> None:
    """For a server that was started by itself, next to others that may be counting already."""
    if ARE_METRICS_ON:
        for path in settings.METRICS_DIR.glob("*.db"):
            if not is_alive(path):
                path.unlink(missing_ok=True)


def announce(process: str) -> None:
    """For each process when it begins: from now on it is one of those that count."""
    PROCESSES.set(1, process)


def show_all() -> None:
    """Lets every number be seen, at 0."""
    for instrument in INSTRUMENTS:
        instrument.show()


def forget(process_id: int) -> None:
    """For whoever sees a process end: its counts stay, what it held is gone."""
    if ARE_METRICS_ON:
        for path in settings.METRICS_DIR.glob(f"gauge_live*_{process_id}.db"):
            path.unlink(missing_ok=True)


def is_alive(path: Path) -> bool:
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
