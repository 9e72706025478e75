"""Looks up processes in /proc."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path


def children_of(pid: int | None) -> set[int]:
    """The pids of the living children of a process."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            state, parent = state_and_parent(int(entry.name))
            if parent == pid and state not in ("Z", "X", ""):
                found.add(int(entry.name))
    return found


def zombies_of(pid: int | None) -> int:
    entries = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return sum(state_and_parent(entry) == ("Z", pid) for entry in entries)


def state_and_parent(pid: int) -> tuple[str, int]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[1])


def is_running(pid: int) -> bool:
    return state_and_parent(pid)[0] not in ("Z", "X", "")


def resident_kilobytes(pid: int) -> int:
    """Resident memory, including pages shared with other processes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() // 1024


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.01)
