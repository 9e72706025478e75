"""Bounds how many runs of an organisation wait in the queue, and the bytes of their payloads."""

import threading
import time
import uuid
from typing import NamedTuple

from django.conf import settings
from django.db.models import Sum

from accounts.models import Organisation
from scripts_engine.models import QueueEntry, Run

RETRY_AFTER_SECONDS = 60
# What is known is trusted for this long, a count only while it is below half of the limit.
_TRUST_SECONDS = 1.0


class QueueFullError(Exception):
    """As many runs of the organisation as allowed, or as many bytes, wait. Nothing was queued."""

    retry_after_seconds = RETRY_AFTER_SECONDS


class _Known(NamedTuple):
    waiting: int
    is_over_quota: bool
    at: float


_lock = threading.Lock()
_known: dict[uuid.UUID, _Known] = {}


def check_room(organisation_id: uuid.UUID, number: int = 1) -> None:
    """Raises ``QueueFullError`` unless that many more runs of the organisation may wait.

    Counting a long queue takes longer than inserting into it, so a short one is counted once a
    second, and this process adds what it has put there since.
    """
    limit, now = settings.QUEUE_MAX_WAITING, time.monotonic()
    with _lock:
        known = _known.get(organisation_id)
        if known is not None and now - known.at >= _TRUST_SECONDS:
            known = None
        if known is not None:
            if known.is_over_quota:
                raise QueueFullError
            waiting = known.waiting + number
            if waiting <= limit // 2:
                _known[organisation_id] = known._replace(waiting=waiting)
                return
    waiting = waiting_of(organisation_id)
    if waiting + number > limit:
        raise QueueFullError
    if known is None:
        known = _Known(waiting, is_over_quota(organisation_id, waiting), now)
    with _lock:
        if len(_known) > 10_000:
            _known.clear()
        _known[organisation_id] = known._replace(waiting=waiting + number)
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
