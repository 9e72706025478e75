"""Bounds how many runs of an organisation wait in the queue."""

import threading
import time
import uuid
from typing import NamedTuple

from django.conf import settings

from scripts_engine.models import QueueEntry

RETRY_AFTER_SECONDS = 60
# A count is trusted for this long while it is below half of the limit.
_TRUST_SECONDS = 1.0


class QueueFullError(Exception):
    """As many runs of the organisation as allowed wait in the queue. Nothing was queued."""

    retry_after_seconds = RETRY_AFTER_SECONDS


class _Count(NamedTuple):
    waiting: int
    at: float


_lock = threading.Lock()
_counts: dict[uuid.UUID, _Count] = {}


def check_room(organisation_id: uuid.UUID, number: int = 1) -> None:
    """Raises ``QueueFullError`` unless that many more runs of the organisation may wait.

    Counting a long queue takes longer than inserting into it, so a short one is counted once a
    second, and this process adds what it has put there since.
    """
    limit, now = settings.QUEUE_MAX_WAITING, time.monotonic()
    with _lock:
        known = _counts.get(organisation_id)
        if known is not None and now - known.at < _TRUST_SECONDS:
            waiting = known.waiting + number
            if waiting <= limit // 2:
                _counts[organisation_id] = _Count(waiting, known.at)
                return
    waiting = waiting_of(organisation_id) + number
    if waiting > limit:
        raise QueueFullError
    with _lock:
        if len(_counts) > 10_000:
            _counts.clear()
        _counts[organisation_id] = _Count(waiting, now)


def waiting_of(organisation_id: uuid.UUID) -> int:
    """How many of the organisation's runs wait, counted up to the limit."""
    waiting = QueueEntry.objects.waiting().filter(organisation=organisation_id)
    return waiting.order_by()[: settings.QUEUE_MAX_WAITING].count()
