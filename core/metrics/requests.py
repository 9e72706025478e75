"""Middleware that counts requests by view, method and status, and samples the database pool."""

import time
from collections.abc import Callable

from django.db import connection
from django.http import HttpRequest, HttpResponse

from core.metrics.catalogue import (
    DATABASE_POOL_ERRORS,
    DATABASE_POOL_SIZE,
    DATABASE_POOL_WAITS,
    REQUEST_DURATION,
    REQUEST_EXCEPTIONS,
    RESPONSES,
)

# A client may send any word as a method; as labels they would grow without bound.
_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "OPTIONS", "CONNECT", "PATCH"}
_POOL_SAMPLE_INTERVAL_SECONDS = 1.0


class RequestMetrics:
    """First in the chain, so that its times cover the whole request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._next_pool_sample_at = 0.0

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self._get_response(request)
        match = request.resolver_match
        view = match.view_name if match is not None else "<unnamed view>"
        method = request.method if request.method in _METHODS else "<invalid method>"
        RESPONSES.labels(str(response.status_code), view, method).inc()
        REQUEST_DURATION.labels(view, method).observe(time.perf_counter() - started)
        self._sample_pool()
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        REQUEST_EXCEPTIONS.labels(type(exception).__name__).inc()

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
