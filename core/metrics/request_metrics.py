"""Requests by address, method and status, under django-prometheus's names."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django_prometheus.middleware import Metrics, PrometheusAfterMiddleware
from django_prometheus.utils import Time, TimeSince
from prometheus_client import Counter, Histogram

from core.metrics.catalogue import SECONDS
from core.metrics.pool_usage import note_pool_usage


class RequestCounts(Metrics):
    """The three of the library's twenty that answer a question each."""

    def register(self) -> None:
        self.responses_by_status_view_method = self.register_metric(
            Counter,
            "django_http_responses_total_by_status_view_method",
            "Count of responses by status, view, method.",
            ["status", "view", "method"],
        )
        self.requests_latency_by_view_method = self.register_metric(
            Histogram,
            "django_http_requests_latency_seconds_by_view_method",
            "Histogram of request processing time labelled by view.",
            ["view", "method"],
            buckets=SECONDS,
        )
        self.exceptions_by_type = self.register_metric(
            Counter,
            "django_http_exceptions_total_by_type",
            "Count of exceptions by object type.",
            ["type"],
        )


class RequestMetrics(PrometheusAfterMiddleware):
    """First in the chain, so that its times are those of the whole request."""

    metrics_cls = RequestCounts

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = Time()
        response: HttpResponse = self.get_response(request)
        view, method = self._get_view_name(request), self._method(request)
        self.metrics.responses_by_status_view_method.labels(
            str(response.status_code), view, method
        ).inc()
        self.metrics.requests_latency_by_view_method.labels(view, method).observe(
            TimeSince(started)
        )
        note_pool_usage()
        return response

    def process_view(self, *arguments: Any) -> None:
        """Counted with the response."""

    def process_template_response(self, request: HttpRequest, response: Any) -> Any:
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        self.metrics.exceptions_by_type.labels(type(exception).__name__).inc()
