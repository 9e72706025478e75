"""The services of this node, as their parent knows them."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from core.server.services import services_of_this_node


class ServiceCollector(Collector):
    """Tells nothing where the web server was started by itself."""

    def collect(self) -> Iterable[Metric]:
        table = services_of_this_node()
        if table is None:
            return
        up = GaugeMetricFamily("moonhook_service_up", "Whether it runs.", labels=["service"])
        restarts = CounterMetricFamily(
            "moonhook_service_restarts",
            "Starts of the service after its death, since the node started.",
            labels=["service"],
        )
        for name, state in table:
            up.add_metric([name], state.is_up)
            restarts.add_metric([name], state.restarts)
        yield from (up, restarts)
