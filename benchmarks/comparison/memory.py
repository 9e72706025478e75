"""The memory of processes, from /proc."""

import re
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from benchmarks.comparison.servers import Server

MIB = 2**20


class Memory(NamedTuple):
    """Memory of several processes. ``pss_mib`` is ``None`` if it may not be read.

    RSS counts a shared page once for each process, PSS once in total.
    """

    processes: int
    rss_mib: float
    pss_mib: float | None


def memory_of(pids: Iterable[int]) -> Memory:
    each = [sizes for pid in pids if (sizes := _sizes(pid)) is not None]
    pss = [pss for _, pss in each if pss is not None]
    return Memory(
        processes=len(each),
        rss_mib=sum(rss for rss, _ in each) / MIB,
        pss_mib=sum(pss) / MIB if len(pss) == len(each) else None,
    )


def _sizes(pid: int) -> tuple[float, float | None] | None:
    """RSS and PSS in bytes, or ``None`` if the process has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return _kib(rollup, "Rss") * 1024, _kib(rollup, "Pss") * 1024
    except PermissionError:
        # A sandbox shows itself to root alone.
        return _kib(Path(f"/proc/{pid}/status").read_text(), "VmRSS") * 1024, None
    except (FileNotFoundError, ProcessLookupError):
        return None


def _kib(text: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) if found else 0


def children_of(pid: int) -> list[int]:
    """The children of all threads of a process."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def generations_of(pid: int) -> list[list[int]]:
    """The process, its children, their children, and so on."""
    generations = [[pid]]
    while children := [child for parent in generations[-1] for child in children_of(parent)]:
        generations.append(children)
    return generations


def tree_of(pid: int) -> list[int]:
    return [each for generation in generations_of(pid) for each in generation]


def memory_of_server(server: Server) -> dict[str, Memory]:
    """The memory of all processes, and of each named generation."""
    sizes = {server.name: memory_of(tree_of(server.pid))}
    generations = generations_of(server.pid)
    # A kind that has not been started yet is there with nothing.
    for kind, pids in zip_longest(server.generations, generations[: len(server.generations)]):
        sizes[f"{server.name}: {kind}"] = memory_of(pids or [])
    return sizes
