"""Counters, gauges and histograms that cost almost nothing while metrics are off.

They wrap those of prometheus_client in multi-process mode: each process writes to files of its
own, and the process that serves /metrics adds them up. The wrapped metric is created on first
use, so that a command that counts nothing leaves no file.
"""

from collections.abc import Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import prometheus_client
from django.conf import settings

from core.metrics import ARE_METRICS_ON, number_files

INSTRUMENTS: list["Instrument"] = []

number_files.install()

_creating = Lock()


class Instrument:
    """``known`` lists the label values that are exported as 0 from the start."""

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        *,
        known: Sequence[Sequence[str]] = (),
    ) -> None:
        self.name = name
        self.help_text = help_text
        self.labels = tuple(labels)
        self._known = [tuple(values) for values in known] if labels else [()]
        self._is_on = ARE_METRICS_ON
        self._children: dict[tuple[str, ...], Any] = {}
        self._metric: Any = None
        INSTRUMENTS.append(self)

    def export_zeros(self) -> None:
        """Exports the known label values as 0."""
        for values in self._known if self._is_on else ():
            self._child(values)

    def _child(self, values: tuple[str, ...]) -> Any:
        child = self._children.get(values)
        return self._create_child(values) if child is None else child

    def _create_child(self, values: tuple[str, ...]) -> Any:
        with _creating:
            if self._metric is None:
                # If this fails, the numbers stay in memory.
                with suppress(OSError):
                    settings.METRICS_DIR.mkdir(parents=True, exist_ok=True)
                self._metric = self._create()
            child = self._metric.labels(*values) if self.labels else self._metric
            self._children[values] = child
        return child

    def _create(self) -> Any:
        raise NotImplementedError


class Counter(Instrument):
    def inc(self, *labels: str, amount: float = 1) -> None:
        if self._is_on:
            self._child(labels).inc(amount)

    def _create(self) -> Any:
        return prometheus_client.Counter(self.name, self.help_text, self.labels)


class Gauge(Instrument):
    """A gauge that is summed over all live processes."""

    _mode: Any = "livesum"

    def set(self, value: float, *labels: str) -> None:
        if self._is_on:
            self._child(labels).set(value)

    def _create(self) -> Any:
        return prometheus_client.Gauge(
            self.name, self.help_text, self.labels, multiprocess_mode=self._mode
        )


class GaugePerProcess(Gauge):
    """A gauge with one value for each live process, labelled with its ``pid``."""

    _mode = "liveall"


class Histogram(Instrument):
    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Sequence[str] = (),
        *,
        buckets: Sequence[float],
        known: Sequence[Sequence[str]] = (),
    ) -> None:
        super().__init__(name, help_text, labels, known=known)
        self._buckets = buckets

    def observe(self, value: float, *labels: str) -> None:
        if self._is_on:
            self._child(labels).observe(value)

    def _create(self) -> Any:
        return prometheus_client.Histogram(
            self.name, self.help_text, self.labels, buckets=self._buckets
        )
