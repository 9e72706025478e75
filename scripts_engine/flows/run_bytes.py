"""What runs take is counted while they are recorded, and held to their organisation's quota.

A process keeps the count to itself until it is worth a statement: a plain call pays an addition.
Upkeep (``scripts_engine.flows.run_quota``) counts what a killed process forgot.
"""

import json
import logging
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.core.exceptions import ObjectDoesNotExist
from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import F

from accounts.models import RunStorage
from scripts_engine.flows.remove_payloads import remove_payloads_beyond

logger = logging.getLogger(__name__)

# What a process keeps to itself of an organisation's runs, in bytes and in time.
STEP_BYTES = 1024 * 1024
STEP_SECONDS = 10.0

_TEXTS = ("request_query", "unsaved_source", "error_traceback")
_JSON = ("request_headers", "response_headers", "logs", "host_calls")


def sizes_of(row: Mapping[str, Any]) -> dict[str, int]:
    """The columns of a run that say how large it is."""
    request_bytes, response_bytes = len(row["request_body"]), len(row["response_body"])
    payload_bytes = (
        request_bytes
        + response_bytes
        + sum(len(row[name].encode()) for name in _TEXTS)
        # SQLite keeps this very text, in which a character may take twelve bytes.
        + sum(len(json.dumps(row[name])) for name in _JSON if row[name])
    )
    return {
        "request_bytes": request_bytes,
        "response_bytes": response_bytes,
        "payload_bytes": payload_bytes,
    }


def count_recorded(organisation_id: uuid.UUID, payload_bytes: int) -> None:
    """Counts a run that was recorded, and removes the oldest payloads where they are too many.

    Never raises for the database's sake, nor when the organisation is deleted: the run is
    recorded.
    """
    due = _uncounted.add(organisation_id, payload_bytes)
    if not due:
        return
    try:
        _settle(organisation_id, due)
    except (DatabaseError, ObjectDoesNotExist) as error:
        logger.warning("Bytes of runs not counted until upkeep: %s", " ".join(str(error).split()))


def _settle(organisation_id: uuid.UUID, due: int) -> None:
    with transaction.atomic():
        storage = RunStorage.objects.filter(pk=organisation_id)
        if not storage.update(bytes_used=F("bytes_used") + due):
            RunStorage.objects.bulk_create(
                [RunStorage(organisation_id=organisation_id)], ignore_conflicts=True
            )
            storage.update(bytes_used=F("bytes_used") + due)
        found = storage.select_related("organisation").get()
    limit = found.organisation.run_bytes_limit
    if limit is not None and found.bytes_used > limit:
        # More than came, so that a quota that was lowered is reached; not all at once in a call.
        remove_payloads_beyond(organisation_id, limit, at_most_bytes=2 * due)


class _Amount(NamedTuple):
    bytes: int
    since: float


class _Uncounted:
    """What this process has recorded and not yet added to ``RunStorage``, by organisation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._amounts: dict[uuid.UUID, _Amount] = {}

    def add(self, organisation_id: uuid.UUID, count: int) -> int:
        """What is to be added to the database now: mostly nothing."""
        now = time.monotonic()
        with self._lock:
            amount = self._amounts.get(organisation_id) or _Amount(0, now)
            total = amount.bytes + count
            if total < STEP_BYTES and now - amount.since < STEP_SECONDS:
                self._amounts[organisation_id] = _Amount(total, amount.since)
                return 0
            self._amounts.pop(organisation_id, None)
            return total


_uncounted = _Uncounted()
