"""What runs and their sandboxes count."""

from itertools import product

from core.metrics.instruments import SECONDS, Counter, Gauge, Histogram, export_from_start

_STATUSES = ("succeeded", "failed", "timed-out", "out-of-memory")
_TRIGGERS = ("hook", "admin-graphql", "admin", "queue", "schedule", "replay", "test", "alert")
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
QUEUE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)
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


export_from_start(RUNS, product(_STATUSES, _TRIGGERS))


export_from_start(RUN_DURATION, product(_TRIGGERS))


export_from_start(SANDBOX_KILLS, product(_KILLS))


export_from_start(SANDBOX_REFUSALS, [("all-slots",), ("tenant-share",)])
