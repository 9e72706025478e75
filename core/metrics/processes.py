"""Memory and CPU time of this node's processes, by kind of process."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from core.metrics import process_files
from core.metrics.instruments import PROCESSES

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def announce(process: str) -> None:
    """Registers this process under a name. Called by each process when it starts."""
    process_files.keep()
    PROCESSES.labels(process).set(1)


class ProcessCollector(Collector):
    """Yields the counted metrics, and memory and CPU time from /proc for each kind of process."""

    def __init__(self, directory: Path) -> None:
        self._counted = MultiProcessCollector(None, str(directory))

    def collect(self) -> Iterable[Metric]:
        for metric in self._counted.collect():
            if metric.name == "moonhook_processes":
                yield from _described(metric)
            else:
                yield metric


def _described(listed: Metric) -> Iterable[Metric]:
    alive: Counter[str] = Counter()
    memory_bytes: Counter[str] = Counter()
    cpu_seconds: dict[str, float] = {}
    for sample in listed.samples:
        process = sample.labels["process"]
        if (usage := _usage_of(sample.labels["pid"])) is not None:
            alive[process] += 1
            memory_bytes[process] += usage[0]
            cpu_seconds[process] = cpu_seconds.get(process, 0.0) + usage[1]
    count = GaugeMetricFamily(listed.name, listed.documentation, labels=["process"])
    memory = GaugeMetricFamily(
        "moonhook_process_resident_memory_bytes", "Memory in use.", labels=["process"]
    )
    cpu = CounterMetricFamily(
        "moonhook_process_cpu_seconds", "CPU time of the live processes.", labels=["process"]
    )
    for process in alive:
        count.add_metric([process], alive[process])
        memory.add_metric([process], memory_bytes[process])
        cpu.add_metric([process], cpu_seconds[process])
    yield from (count, memory, cpu)


def _usage_of(process_id: str) -> tuple[int, float] | None:
    """Returns resident bytes and CPU seconds, or ``None`` if the process has ended. See proc(5)."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    cpu_ticks = int(fields[11]) + int(fields[12])
    return int(fields[21]) * _PAGE_BYTES, cpu_ticks / _TICKS_PER_SECOND
