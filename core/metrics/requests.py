"""Counts requests by view, method and status, and samples the database pool."""

import time
from collections.abc import Callable
from functools import cache

from django.db import connection
from django.http import HttpRequest, HttpResponse
from prometheus_client import Counter, Histogram

from core.metrics.instruments import (
    DATABASE_POOL_ERRORS,
    DATABASE_POOL_SIZE,
    DATABASE_POOL_WAITS,
    REQUEST_DURATION,
    REQUEST_EXCEPTIONS,
    RESPONSES,
)

UNNAMED_VIEW = "<unnamed view>"
# A client may send any word as a method; as labels they would grow without bound.
_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH"}
_POOL_SAMPLE_INTERVAL_SECONDS = 1.0


class RequestCounter:
    """Counts for one application of this process."""

    def __init__(self) -> None:
        self._next_pool_sample_at = 0.0

    def count(self, view: str, method: str | None, status: int, seconds: float) -> None:
        known_method = method if method in _METHODS else "<invalid method>"
        responses, duration = _of_requests(status, view, known_method)
        responses.inc()
        duration.observe(seconds)
        self._sample_pool()

    def count_exception(self, error: Exception) -> None:
        REQUEST_EXCEPTIONS.labels(type(error).__name__).inc()

    def _sample_pool(self) -> None:
        now = time.monotonic()
        if now < self._next_pool_sample_at:
            return
        self._next_pool_sample_at = now + _POOL_SAMPLE_INTERVAL_SECONDS
        pool = getattr(connection, "pool", None)
        if pool is None:
            return
        figures = pool.get_stats()
        DATABASE_POOL_SIZE.set(figures.get("pool_size", 0))
        DATABASE_POOL_WAITS.set(figures.get("requests_queued", 0))
        DATABASE_POOL_ERRORS.set(figures.get("requests_errors", 0))


@cache
def _of_requests(status: int, view: str, method: str) -> tuple[Counter, Histogram]:
    return RESPONSES.labels(str(status), view, method), REQUEST_DURATION.labels(view, method)


class RequestMetrics:
    """Middleware, first in the chain, so that its times cover the whole request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._counter = RequestCounter()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self._get_response(request)
        match = request.resolver_match
        view = UNNAMED_VIEW if match is None else match.view_name
        seconds = time.perf_counter() - started
        self._counter.count(view, request.method, response.status_code, seconds)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        self._counter.count_exception(exception)
