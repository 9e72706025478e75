"""Gauges that an app computes from the database when /metrics is read."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from django.db import DatabaseError, connection
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from core.bounded import Bounded, NoAnswer

_SECONDS = 2.0


class Figure(NamedTuple):
    """A gauge, with one value or with one for each value of a label."""

    name: str
    documentation: str
    value: float | Mapping[str, float]
    label: str = ""


class FigureCollector(Collector):
    """Queries the database with a time limit. Yields nothing if the database does not answer, which
    ``moonhook_database_up`` reports.
    """

    def __init__(self, ask: Callable[[], Iterable[Figure]]) -> None:
        def ask_and_disconnect() -> list[Figure]:
            try:
                return list(ask())
            finally:
                connection.close()

        self._ask = Bounded(ask_and_disconnect, seconds=_SECONDS)

    def collect(self) -> Iterable[Metric]:
        try:
            figures = self._ask()
        except (DatabaseError, NoAnswer):
            return
        for figure in figures:
            if isinstance(figure.value, Mapping):
                gauge = GaugeMetricFamily(figure.name, figure.documentation, labels=[figure.label])
                for label, value in figure.value.items():
                    gauge.add_metric([label], value)
                yield gauge
            else:
                yield GaugeMetricFamily(figure.name, figure.documentation, figure.value)
