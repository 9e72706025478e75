"""Every metric that a process counts. Labels are few and fixed: never an organisation or an id.

They are prometheus_client's own, in multi-process mode if metrics are on: each process writes to
files of its own, and the process that serves /metrics adds them up. The metrics that are computed
when /metrics is read are in the collectors beside this module.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from core.metrics import process_files

process_files.prepare()

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25)
LAG_SECONDS = (0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30, 60, 300, 1800, 3600)
QUEUE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)

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

_STATUSES = ("succeeded", "failed", "timed-out", "out-of-memory")
_TRIGGERS = ("hook", "admin-graphql", "admin", "queue", "schedule", "replay")
RUNS = Counter(
    "moonhook_runs_total",
    "Runs by outcome and trigger.",
    ["status", "trigger"],
)
RUN_DURATION = Histogram(
    "moonhook_run_duration_seconds",
    "Duration of runs.",
    ["trigger"],
    buckets=SECONDS,
)
RUN_QUEUE = Histogram(
    "moonhook_run_queue_seconds",
    "Time that runs waited for a slot and a process.",
    buckets=QUEUE_SECONDS,
)
RUN_PAYLOADS_REMOVED = Counter(
    "moonhook_run_payloads_removed_total",
    "Runs whose payload was removed because their organisation's quota was used up.",
)

SANDBOX_SLOTS = Gauge(
    "moonhook_sandbox_slots", "Scripts that can run at the same time.", multiprocess_mode="livesum"
)
SANDBOX_SLOTS_IN_USE = Gauge(
    "moonhook_sandbox_slots_in_use", "Scripts that are running.", multiprocess_mode="livesum"
)
SANDBOX_WAITING = Gauge(
    "moonhook_sandbox_waiting", "Runs that are waiting for a slot.", multiprocess_mode="livesum"
)
SANDBOX_SPAWNS = Counter("moonhook_sandbox_spawns_total", "Sandbox processes started.")
_KILLS = (
    "wall-time",
    "cpu-time",
    "memory",
    "crashed",
    "protocol",
    "host-calls",
    "host",
    "unreachable",
)
SANDBOX_KILLS = Counter(
    "moonhook_sandbox_kills_total",
    "Sandbox processes killed or found dead.",
    ["reason"],
)
SANDBOX_RECYCLED = Counter(
    "moonhook_sandbox_recycled_total", "Sandbox processes replaced after their last run."
)
SANDBOX_EVICTED = Counter(
    "moonhook_sandbox_evicted_total",
    "Sandbox processes replaced to make room for another organisation.",
)
SANDBOX_REFUSALS = Counter(
    "moonhook_sandbox_refusals_total",
    "Runs refused because all slots and places in the queue, or the organisation's share of them, "
    "were in use.",
    ["reason"],
)

HTTP_LOOK_UPS_IN_USE = Gauge(
    "moonhook_http_look_ups_in_use",
    "Host name look-ups of scripts in progress, including those whose run has ended.",
    multiprocess_mode="livesum",
)

HOOK_REFUSALS = Counter(
    "moonhook_hook_refusals_total", "Hook calls refused before a run.", ["code"]
)
SENDER_REFUSALS = Counter(
    "moonhook_sender_refusals_total",
    "Hook calls refused before a run, by the reason that administrators see.",
    ["reason"],
)
HANDSHAKES = Counter(
    "moonhook_handshakes_total", "Handshakes of senders that were answered.", ["sender"]
)

_DUPLICATES = ("repeated", "waited", "in-progress", "freed")
DUPLICATES = Counter(
    "moonhook_duplicates_total", "Deliveries that were not the first of their key.", ["outcome"]
)

_ATTEMPTS = ("succeeded", "retried", "dead-letter", "lost", "discarded")
ATTEMPTS = Counter(
    "moonhook_attempts_total", "Attempts at queued runs, by what followed.", ["outcome"]
)
DEAD_LETTERS = Counter("moonhook_dead_letters_total", "Queued runs that failed for good.")
QUEUE_WAIT = Histogram(
    "moonhook_queue_wait_seconds",
    "Time from when a queued run was due until it started.",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600),
)
_TICK_OUTCOMES = ("ran", "late", "skipped-overlap", "skipped-missed")
SCHEDULE_TICKS = Counter(
    "moonhook_schedule_ticks_total", "Ticks of schedules by outcome.", ["outcome"]
)
SCHEDULE_LAG = Histogram(
    "moonhook_schedule_lag_seconds",
    "Time from a tick to its run being queued.",
    buckets=LAG_SECONDS,
)
QUEUE_SLOTS_IN_USE = Gauge(
    "moonhook_queue_slots_in_use", "Queued runs in progress.", multiprocess_mode="livesum"
)

RATE_LIMITED = Counter(
    "moonhook_rate_limited_total", "Attempts refused by a rate limit.", ["action"]
)
# The concurrency limits of core.http.bulkhead.
BULKHEADS = ("graphql", "admin", "admin-logins", "passwords", "calls")
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
SESSIONS_OPENED = Counter(
    "moonhook_sessions_opened_total",
    "Sessions opened.",
    ["credential"],
)
SESSIONS_REFUSED = Counter(
    "moonhook_sessions_refused_total", "Logins refused.", ["credential", "reason"]
)
PIN_CHECKS = Counter(
    "moonhook_pin_checks_total",
    "PINs checked, by result.",
    ["result"],
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

# Label values that are exported as 0 from the start.
_KNOWN: dict[MetricWrapperBase, Sequence[Sequence[str]]] = {
    RUNS: list(product(_STATUSES, _TRIGGERS)),
    RUN_DURATION: [(trigger,) for trigger in _TRIGGERS],
    SANDBOX_KILLS: [(reason,) for reason in _KILLS],
    SANDBOX_REFUSALS: [("all-slots",), ("tenant-share",)],
    BULKHEAD_REFUSALS: [(name,) for name in BULKHEADS],
    SCHEDULE_TICKS: [(outcome,) for outcome in _TICK_OUTCOMES],
    DUPLICATES: [(outcome,) for outcome in _DUPLICATES],
    ATTEMPTS: [(outcome,) for outcome in _ATTEMPTS],
    CLIENTS_GIVEN_UP: [("slow-request",), ("slow-reader",), ("no-room",)],
    SESSIONS_OPENED: [("ApiKey",), ("Token",)],
    PIN_CHECKS: [("accepted",), ("refused",)],
    DELIVERIES: list(product(("email", "sms"), ("sent", "failed"))),
}


def export_zeros() -> None:
    """Exports every known number as 0."""
    for metric, known in _KNOWN.items():
        for values in known:
            metric.labels(*values)


def count_run(status: str, trigger: str, duration_seconds: float, queue_seconds: float) -> None:
    runs, run_duration = _of_runs(status, trigger)
    runs.inc()
    run_duration.observe(duration_seconds)
    RUN_QUEUE.observe(queue_seconds)


@cache
def _of_runs(status: str, trigger: str) -> tuple[Counter, Histogram]:
    return RUNS.labels(status, trigger), RUN_DURATION.labels(trigger)
