"""Counters, gauges and histograms that cost nothing while metrics are off.

They are prometheus_client's, in its multi-process mode: each process keeps its numbers in files
of its own, and whoever is asked adds up those of all. They are made on first use, so that a
command that counts nothing leaves no file.
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

_making = Lock()


class Instrument:
    """``known`` lists the values of the labels that are shown as 0 from the start."""

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

    def show(self) -> None:
        """Makes the known ones, at 0."""
        for values in self._known if self._is_on else ():
            self._child(values)

    def _child(self, values: tuple[str, ...]) -> Any:
        child = self._children.get(values)
        return self._make_child(values) if child is None else child

    def _make_child(self, values: tuple[str, ...]) -> Any:
        with _making:
            if self._metric is None:
                # Where that fails, the numbers stay in memory.
                with suppress(OSError):
                    settings.METRICS_DIR.mkdir(parents=True, exist_ok=True)
                self._metric = self._make()
            child = self._metric.labels(*values) if self.labels else self._metric
            self._children[values] = child
        return child

    def _make(self) -> Any:
        raise NotImplementedError


class Counter(Instrument):
    def inc(self, *labels: str, amount: float = 1) -> None:
        if self._is_on:
            self._child(labels).inc(amount)

    def _make(self) -> Any:
        return prometheus_client.Counter(self.name, self.help_text, self.labels)


class Gauge(Instrument):
    """Of all living processes the sum."""

    def set(self, value: float, *labels: str) -> None:
        if self._is_on:
            self._child(labels).set(value)

    def _make(self) -> Any:
        return prometheus_client.Gauge(
            self.name, self.help_text, self.labels, multiprocess_mode=self._mode
        )

    _mode: Any = "livesum"


class GaugeOfEach(Gauge):
    """One value for each living process, with its ``pid``."""

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

    def _make(self) -> Any:
        return prometheus_client.Histogram(
            self.name, self.help_text, self.labels, buckets=self._buckets
        )
