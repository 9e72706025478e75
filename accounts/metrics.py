"""What PIN logins count."""

from core.metrics.instruments import Counter, export_from_start

PIN_CHECKS = Counter(
    "moonhook_pin_checks_total",
    "PINs checked, by result.",
    ["result"],
)

export_from_start(PIN_CHECKS, [("accepted",), ("refused",)])
