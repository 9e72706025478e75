"""The kinds of metrics that a process counts, and what a process of any service counts.

The kinds are prometheus_client's own, in multi-process mode if metrics are on: each process writes
to files of its own, and the process that serves /metrics adds them up.

Labels are few and fixed: never an organisation or an id. Apps define their own metrics in their
``metrics.py``, which is imported at start, so that every process knows all metrics.
"""

from collections.abc import Iterable
from itertools import product

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from core.metrics import process_files

__all__ = [
    "ADMIN_DEADLINES",
    "BULKHEAD_REFUSALS",
    "CLIENTS_GIVEN_UP",
    "DATABASE_POOL_ERRORS",
    "DATABASE_POOL_SIZE",
    "DATABASE_POOL_WAITS",
    "DELIVERIES",
    "PROCESSES",
    "RATE_LIMITED",
    "REQUEST_DURATION",
    "REQUEST_EXCEPTIONS",
    "RESPONSES",
    "SECONDS",
    "TASKS_FINISHED",
    "Counter",
    "Gauge",
    "Histogram",
    "export_from_start",
    "export_zeros",
]

process_files.prepare()

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25)

_known: list[tuple[MetricWrapperBase, list[tuple[str, ...]]]] = []
# Named as django-prometheus names them, so that existing dashboards fit.
RESPONSES = Counter(
    "django_http_responses_total_by_status_view_method",
    "Count of responses by status, view, method.",
    ["status", "view", "method"],
)
REQUEST_DURATION = Histogram(
    "django_http_requests_latency_seconds_by_view_method",
    "Histogram of request processing time labelled by view.",
    ["view", "method"],
    buckets=SECONDS,
)
REQUEST_EXCEPTIONS = Counter(
    "django_http_exceptions_total_by_type",
    "Count of exceptions by object type.",
    ["type"],
)
RATE_LIMITED = Counter(
    "moonhook_rate_limited_total", "Attempts refused by a rate limit.", ["action"]
)
BULKHEAD_REFUSALS = Counter(
    "moonhook_bulkhead_refusals_total",
    "Requests refused because too many of their kind or organisation were being served.",
    ["bulkhead"],
)
CLIENTS_GIVEN_UP = Counter(
    "moonhook_clients_given_up_total",
    "Clients disconnected because they were too slow, or to make room for others.",
    ["reason"],
)
ADMIN_DEADLINES = Counter(
    "moonhook_admin_deadlines_total", "Admin pages stopped at ADMIN_DEADLINE."
)
DELIVERIES = Counter(
    "moonhook_deliveries_total",
    "Attempts to send a message through a channel.",
    ["channel", "result"],
)
TASKS_FINISHED = Counter(
    "moonhook_tasks_finished_total", "Background tasks finished.", ["task", "status"]
)
DATABASE_POOL_SIZE = Gauge(
    "moonhook_database_pool_connections",
    "Connections in the pools (PostgreSQL).",
    multiprocess_mode="livesum",
)
DATABASE_POOL_WAITS = Gauge(
    "moonhook_database_pool_waits",
    "Requests for a connection that had to wait, since start.",
    multiprocess_mode="livesum",
)
DATABASE_POOL_ERRORS = Gauge(
    "moonhook_database_pool_errors",
    "Requests for a connection that failed, since start.",
    multiprocess_mode="livesum",
)
PROCESSES = Gauge(
    "moonhook_processes", "Running processes.", ["process"], multiprocess_mode="liveall"
)


def export_from_start(metric: MetricWrapperBase, known: Iterable[tuple[str, ...]]) -> None:
    """Registers the values of a metric's labels that are exported as 0 before they occur."""
    _known.append((metric, list(known)))


def export_zeros() -> None:
    """Exports every known number as 0."""
    for metric, known in _known:
        for values in known:
            metric.labels(*values)


export_from_start(BULKHEAD_REFUSALS, product(("graphql", "admin", "admin-logins", "passwords")))
export_from_start(CLIENTS_GIVEN_UP, [("slow-request",), ("slow-reader",), ("no-room",)])
export_from_start(DELIVERIES, product(("email", "sms"), ("sent", "failed")))
