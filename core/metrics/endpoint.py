"""GET /metrics."""

import hmac
import platform
import tomllib
from collections.abc import Callable, Iterable
from http import HTTPStatus
from ipaddress import ip_address

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from core.built_once import built_once
from core.http.client_address import client_address
from core.http.problem_handlers import safe_methods_only
from core.http.problems import Problem, ProblemCode, problem_response
from core.metrics.figures import Figure, FigureCollector
from core.metrics.processes import ProcessCollector
from core.metrics.services import ServiceCollector
from core.metrics.tasks import TaskCollector

REALM = 'Bearer realm="metrics"'


@safe_methods_only
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """Returns the metrics of all processes of this node.

    Answers 404 if metrics are off or the client's address is not allowed.
    """
    if not settings.ARE_METRICS_ON or not _is_from_allowed_network(request):
        return problem_response(request, Problem(ProblemCode.NOT_FOUND))
    if settings.METRICS_TOKEN and not _has_token(request):
        problem = Problem(ProblemCode.NOT_AUTHENTICATED, headers={"WWW-Authenticate": REALM})
        return problem_response(request, problem)
    return HttpResponse(
        generate_latest(_registry()), content_type=CONTENT_TYPE_LATEST, status=HTTPStatus.OK
    )


def _is_from_allowed_network(request: HttpRequest) -> bool:
    if not settings.METRICS_NETWORKS:
        return True
    address = client_address(request)
    return bool(address) and any(
        ip_address(address) in network for network in settings.METRICS_NETWORKS
    )


def _has_token(request: HttpRequest) -> bool:
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(
        token.strip().encode(errors="replace"), settings.METRICS_TOKEN.encode()
    )


_figures: list[Callable[[], Iterable[Figure]]] = []


def add_figures(ask: Callable[[], Iterable[Figure]]) -> None:
    """Adds metrics of another app. Called while the apps are loaded."""
    _figures.append(ask)


@built_once
def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (
        ProcessCollector(settings.METRICS_DIR),
        ServiceCollector(),
        TaskCollector(),
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
        info.add_metric([_version(), platform.python_version(), django.__version__], 1)
        yield info


@built_once
def _version() -> str:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return str(project["project"]["version"])
