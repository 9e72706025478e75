"""Metrics of this node's services, from the table that the supervisor keeps."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from core.server.service_table import services_of_this_node


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
