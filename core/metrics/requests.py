"""Requests by address, method and status, and the pool of connections that they use."""

import time
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django_prometheus.middleware import Metrics, PrometheusAfterMiddleware
from django_prometheus.utils import Time, TimeSince
from prometheus_client import Counter, Histogram

from core.metrics.catalogue import (
    DATABASE_POOL_ERRORS,
    DATABASE_POOL_SIZE,
    DATABASE_POOL_WAITS,
    SECONDS,
)


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


_EVERY_SECONDS = 1.0
_next_at = 0.0


def note_pool_usage() -> None:
    """Looks at most once a second: it is called with every request."""
    global _next_at  # noqa: PLW0603
    now = time.monotonic()
    if now < _next_at:
        return
    _next_at = now + _EVERY_SECONDS
    pool = getattr(connection, "pool", None)
    if pool is None:
        return
    figures = pool.get_stats()
    DATABASE_POOL_SIZE.set(figures.get("pool_size", 0))
    DATABASE_POOL_WAITS.set(figures.get("requests_queued", 0))
    DATABASE_POOL_ERRORS.set(figures.get("requests_errors", 0))
