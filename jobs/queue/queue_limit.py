"""Bounds how many runs of an organisation wait in the queue, and the bytes of their payloads.

The problem code of a full queue is registered at start.
"""

import threading
import time
import uuid
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

from django.conf import settings
from django.db.models import Sum

from accounts.models import Organisation
from core.caches import BoundedCache
from core.http.problems import Meaning, register_problems
from jobs.models import QueueEntry
from scripts_engine.models import Run
from scripts_engine.runs.problems import NotRunError, busy


class QueueProblem(StrEnum):
    QUEUE_FULL = "queue-full"


def register() -> None:
    register_problems(
        {
            QueueProblem.QUEUE_FULL: Meaning(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Queue full",
                "Too many runs wait in the queue. This one was not queued; try again.",
            ),
        }
    )


RETRY_AFTER_SECONDS = 60
# How long a cached count and quota result stay valid. A count above half of the limit is read again
# each time.
_TRUST_SECONDS = 1.0


class QueueFullError(NotRunError):
    """As many runs of the organisation as allowed, or as many bytes, wait. Nothing was queued."""

    why = busy(
        QueueProblem.QUEUE_FULL,
        "As many runs or bytes as allowed wait in the organisation's queue. Nothing was queued; "
        "try again.",
    )

    retry_after_seconds = RETRY_AFTER_SECONDS


class _Known(NamedTuple):
    waiting: int
    is_over_quota: bool
    until: float


_lock = threading.Lock()
_known: BoundedCache[uuid.UUID, _Known] = BoundedCache(10_000)


def check_queue_limit(organisation_id: uuid.UUID, number: int = 1) -> None:
    """Raises ``QueueFullError`` unless that many more runs of the organisation may wait.

    Counting a long queue takes longer than inserting into it, so a short one is counted once a
    second, and this process adds what it has put there since.
    """
    limit, now = settings.QUEUE_MAX_WAITING, time.monotonic()
    with _lock:
        known = _known.get(organisation_id)
        if known is not None:
            if known.is_over_quota:
                raise QueueFullError
            waiting = known.waiting + number
            if waiting <= limit // 2:
                _known.put(organisation_id, known._replace(waiting=waiting), until=known.until)
                return
    waiting = waiting_of(organisation_id)
    if waiting + number > limit:
        raise QueueFullError
    if known is None:
        until = now + _TRUST_SECONDS
        known = _Known(waiting, is_over_quota(organisation_id, waiting), until)
    with _lock:
        known = known._replace(waiting=waiting + number)
        _known.put(organisation_id, known, until=known.until)
    if known.is_over_quota:
        raise QueueFullError


def waiting_of(organisation_id: uuid.UUID) -> int:
    """How many of the organisation's runs wait, counted up to the limit."""
    waiting = QueueEntry.objects.waiting().filter(organisation=organisation_id)
    return waiting.order_by()[: settings.QUEUE_MAX_WAITING].count()


def is_over_quota(organisation_id: uuid.UUID, waiting: int) -> bool:
    """Whether the payloads of that many waiting runs alone use up the organisation's quota.

    What waits is never removed for the quota, so without this bound a queue could fill the disk.
    """
    organisation = Organisation.objects.only("run_bytes_quota").get(pk=organisation_id)
    limit = organisation.run_bytes_limit
    # A payload is a body with its headers.
    if limit is None or waiting * 2 * settings.HOOK_MAX_BODY_BYTES < limit:
        return False
    payloads = QueueEntry.objects.waiting().filter(organisation=organisation_id)
    runs = Run.objects.filter(pk__in=payloads.order_by().values("payload_of"))
    used: int | None = runs.aggregate(bytes=Sum("payload_bytes"))["bytes"]
    return (used or 0) >= limit
