"""What the queue and schedules count."""

from itertools import product

from core.metrics.instruments import BULKHEAD_REFUSALS, Counter, Gauge, Histogram, export_from_start

LAG_SECONDS = (0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30, 60, 300, 1800, 3600)
_ATTEMPTS = ("succeeded", "retried", "dead-letter", "given-up", "lost", "discarded")
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

export_from_start(SCHEDULE_TICKS, product(_TICK_OUTCOMES))
export_from_start(ATTEMPTS, product(_ATTEMPTS))
export_from_start(BULKHEAD_REFUSALS, [("calls",)])
