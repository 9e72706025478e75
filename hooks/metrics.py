"""What calls of hooks count."""

from itertools import product

from core.metrics.instruments import Counter, export_from_start

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

export_from_start(DUPLICATES, product(_DUPLICATES))
