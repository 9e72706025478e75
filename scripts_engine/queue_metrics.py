"""Metrics of the queue, computed when /metrics is read."""

from core.metrics.figures import Figure
from scripts_engine.flows.queue.figures import COUNTED_UP_TO, queue_figures


def queue_metrics() -> list[Figure]:
    figures = queue_figures()
    return [
        Figure(
            "moonhook_queue_depth",
            f"Runs in the queue, of all nodes; counted up to {COUNTED_UP_TO:,}.",
            {
                "waiting": figures.waiting,
                "delayed": figures.delayed,
                "paused": figures.paused,
                "running": figures.running,
            },
            label="state",
        ),
        Figure(
            "moonhook_queue_oldest_seconds",
            "Time since the oldest run was due that waits for a slot only.",
            figures.oldest_seconds,
        ),
    ]
