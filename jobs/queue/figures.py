"""How full the queue is, how old, and whether somebody works it.

Cheap however many runs wait: organisations are found one by one in an index, and counting stops at
``COUNTED_UP_TO``.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Count, Min
from django.utils import timezone

from core.database.compiled_query import column_value
from core.metrics.exposition import Figure
from jobs.models import Message, QueueEntry
from jobs.models.queue import MAX_LEASE
from jobs.queue.claim import moment_of, statement_of_waiting

COUNTED_UP_TO = 50_000
# Work that is due for so long, while nothing runs, is work that nobody does.
STALLED_AFTER = timedelta(seconds=60)

_COUNT_DUE = """
    SELECT is_claimable, COUNT(*) FROM (
        SELECT {is_open} AND {is_ready} AS is_claimable
        FROM waiting
            JOIN {organisations} AS organisation ON organisation.id = waiting.organisation_id
            JOIN {entries} AS entry ON entry.organisation_id = waiting.organisation_id
                AND entry.lease_id IS NULL AND entry.due_at <= %(now)s
            JOIN {scripts} AS script ON script.id = entry.script_id
        LIMIT %(most)s
    ) AS due GROUP BY is_claimable
"""
_COUNT_DELAYED = """
    SELECT COUNT(*) FROM (
        SELECT 1 FROM waiting
            JOIN {entries} AS entry ON entry.organisation_id = waiting.organisation_id
                AND entry.lease_id IS NULL AND entry.due_at > %(now)s
        LIMIT %(most)s
    ) AS later
"""
# Where the first one cannot start, each script's first one is looked up, as for claims.
_OLDEST = """
    SELECT MIN(due_at) FROM (
        SELECT CASE WHEN {is_ready} THEN first.due_at ELSE (
            SELECT MIN(of_script.due_at) FROM ({ready_scripts}) AS of_script
        ) END AS due_at
        FROM {first_of_each} WHERE {is_open} AND first.due_at <= %(now)s
    ) AS oldest
"""


class QueueFigures(NamedTuple):
    waiting: int
    """Due, and taken by the next free slot."""
    delayed: int
    """Not due yet."""
    paused: int
    """Due, but their script or organisation is paused or disabled."""
    running: int
    oldest_seconds: float
    """How long the first of those waiting has been due; 0 if none waits."""


def queue_figures() -> QueueFigures:
    """The figures of all organisations. Waiting and paused together, and delayed, are counted up
    to ``COUNTED_UP_TO``.
    """
    now = timezone.now()
    due = {bool(is_claimable): count for is_claimable, count in _ask(_COUNT_DUE, now)}
    [(delayed,)] = _ask(_COUNT_DELAYED, now)
    oldest = oldest_due_at()
    return QueueFigures(
        waiting=due.get(True, 0),
        delayed=delayed,
        paused=due.get(False, 0),
        running=QueueEntry.objects.leased().order_by().count(),
        oldest_seconds=0.0 if oldest is None else max(0.0, (now - oldest).total_seconds()),
    )


def oldest_due_at() -> datetime | None:
    """When the first run was due that a free slot would take; ``None`` if none is due."""
    [(due_at,)] = _ask(_OLDEST, timezone.now())
    return None if due_at is None else moment_of(due_at)


def is_stalled() -> bool:
    """Whether runs have been due for long although nothing runs."""
    oldest, now = oldest_due_at(), timezone.now()
    if oldest is None or oldest > now - STALLED_AFTER:
        return False
    running = QueueEntry.objects.leased().filter(
        lease_ends_at__gt=now, lease_ends_at__lte=now + MAX_LEASE
    )
    return not running.exists()


def _ask(statement: str, now: datetime) -> list[tuple[Any, ...]]:
    values = {"now": column_value(QueueEntry, "due_at", now), "most": COUNTED_UP_TO}
    with connection.cursor() as cursor:
        cursor.execute(statement_of_waiting(statement), values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


# --- For /metrics ---------------------------------------------------------------------------------


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


def message_metrics() -> list[Figure]:
    now = timezone.now()
    waiting = Message.objects.due().aggregate(count=Count("pk"), oldest=Min("enqueued_at"))
    counts = {
        "waiting": waiting["count"],
        "running": Message.objects.running().count(),
        "failed": Message.objects.failed().count(),
    }
    oldest_seconds = (now - (waiting["oldest"] or now)).total_seconds()
    return [
        Figure("moonhook_tasks", "Background tasks in the queue, on all nodes.", counts, "status"),
        Figure(
            "moonhook_tasks_oldest_waiting_seconds",
            "Time since the oldest due task was enqueued.",
            max(0.0, oldest_seconds),
        ),
    ]
