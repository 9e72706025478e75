"""Processes and their descendants, from /proc."""

import contextlib
import os
from pathlib import Path


def family_of(pid: int) -> list[int]:
    """The process and all its descendants."""
    running = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    pairs = [(child, parent_of(child)) for child in running]
    family = [pid]
    for parent in family:
        family += [child for child, its_parent in pairs if its_parent == parent]
    return family


def parent_of(pid: int) -> int:
    """0 for one that has just ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def name_of(pid: int) -> str:
    """As ``ps`` shows it: 15 bytes at most."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid: int) -> bool:
    """Whether it runs: one that has ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def children_of(pid: int) -> list[int]:
    """Those that have ended and were not waited for among them."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def send(number: int, pids: list[int]) -> None:
    """Sends the signal to those of the processes that are left."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
