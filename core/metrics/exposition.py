"""What /metrics shows: the counted metrics of all processes, and those computed when it is read."""

import platform
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import django
from django.conf import settings
from django.db import DatabaseError, connection
from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from core.caches import built_once
from core.metrics.processes import ProcessCollector
from core.node_state import services_of_this_node
from core.version import moonhook_version
from core.waiting import Bounded, NoAnswer

__all__ = [
    "CONTENT_TYPE",
    "Figure",
    "FigureCollector",
    "ServiceCollector",
    "add_figures",
    "exposition",
]

_SECONDS = 2.0


class Figure(NamedTuple):
    """A gauge, with one value or with one for each value of a label."""

    name: str
    documentation: str
    value: float | Mapping[str, float]
    label: str = ""


class DatabaseCollector(Collector):
    def __init__(self) -> None:
        self._ask = Bounded(_connect, seconds=_SECONDS)

    def collect(self) -> Iterable[Metric]:
        try:
            self._ask()
        except (DatabaseError, NoAnswer):
            is_up = 0
        else:
            is_up = 1
        yield GaugeMetricFamily(
            "moonhook_database_up", "Whether the database answered within 2 seconds.", is_up
        )


def _connect() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    finally:
        connection.close()


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


class ServiceCollector(Collector):
    """Yields nothing if the web server runs without a supervisor."""

    def collect(self) -> Iterable[Metric]:
        table = services_of_this_node()
        if table is None:
            return
        up = GaugeMetricFamily(
            "moonhook_service_up", "Whether the service runs.", labels=["service"]
        )
        restarts = CounterMetricFamily(
            "moonhook_service_restarts",
            "Restarts of the service after a death, since the node started.",
            labels=["service"],
        )
        for name, state in table:
            up.add_metric([name], state.is_up)
            restarts.add_metric([name], state.restarts)
        yield from (up, restarts)


_figures: list[Callable[[], Iterable[Figure]]] = []


def add_figures(ask: Callable[[], Iterable[Figure]]) -> None:
    """Adds metrics of another app. Called while the apps are loaded."""
    _figures.append(ask)


def exposition() -> bytes:
    """Returns the metrics of all processes of this node, in Prometheus's text format."""
    return generate_latest(_registry())


@built_once
def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (
        ProcessCollector(settings.METRICS_DIR),
        ServiceCollector(),
        DatabaseCollector(),
        *map(FigureCollector, _figures),
        _BuildCollector(),
    ):
        registry.register(collector)
    return registry


class _BuildCollector(Collector):
    def collect(self) -> Iterable[Metric]:
        info = GaugeMetricFamily(
            "moonhook_build_info",
            "Versions of Moonhook, Python and Django.",
            labels=["version", "python", "django"],
        )
        info.add_metric([moonhook_version(), platform.python_version(), django.__version__], 1)
        yield info
