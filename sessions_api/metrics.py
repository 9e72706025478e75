"""What logins count."""

from core.metrics.instruments import Counter, export_from_start

SESSIONS_OPENED = Counter(
    "moonhook_sessions_opened_total",
    "Sessions opened.",
    ["credential"],
)
SESSIONS_REFUSED = Counter(
    "moonhook_sessions_refused_total", "Logins refused.", ["credential", "reason"]
)

export_from_start(SESSIONS_OPENED, [("ApiKey",), ("Token",)])
