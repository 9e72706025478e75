"""Keeps the payloads of an organisation's runs within its quota of bytes.

Recording counts them, in steps: a process keeps small amounts in memory, so that most calls pay
for one addition. Upkeep counts them again, which covers the amounts lost with a killed process, and
deleted runs.
"""

import logging
import threading
import time
import uuid
from functools import partial
from typing import NamedTuple

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db import Error as DatabaseError
from django.db.models import F

from accounts.models import Organisation, RunStorage
from core.green_threads import in_thread
from scripts_engine.flows.run_payloads import (
    remove_oldest_payloads,
    stored_bytes,
)

logger = logging.getLogger(__name__)

# How much, and for how long, a process keeps in memory per organisation.
STEP_BYTES = 1024 * 1024
STEP_SECONDS = 10.0


def count_when_committed(organisation_id: uuid.UUID, payload_bytes: int) -> None:
    """Counts a recorded run, and removes the oldest payloads if the quota is exceeded.

    After the caller's transaction, if there is one: counting takes another connection, which must
    not wait for what the transaction has locked. Does not raise for database errors, or for a
    deleted organisation: the run is recorded.
    """
    database = connections[DEFAULT_DB_ALIAS]
    if database.in_atomic_block:
        database.on_commit(partial(_count, organisation_id, payload_bytes))
    else:
        _count(organisation_id, payload_bytes)


def _count(organisation_id: uuid.UUID, payload_bytes: int) -> None:
    due = _uncounted.add(organisation_id, payload_bytes)
    if not due:
        return
    try:
        in_thread(partial(_add_to_count, organisation_id, due))
    except (DatabaseError, ObjectDoesNotExist) as error:
        logger.warning("Bytes of runs not counted until upkeep: %s", " ".join(str(error).split()))


class _Amount(NamedTuple):
    bytes: int
    since: float


class _Uncounted:
    """Bytes that this process has recorded but not yet added to ``RunStorage``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._amounts: dict[uuid.UUID, _Amount] = {}

    def add(self, organisation_id: uuid.UUID, count: int) -> int:
        """Returns the bytes to add to the database now: usually 0."""
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


def _add_to_count(organisation_id: uuid.UUID, due: int) -> None:
    with transaction.atomic():
        storage = RunStorage.objects.filter(pk=organisation_id)
        if not storage.update(bytes_used=F("bytes_used") + due):
            RunStorage.objects.bulk_create(
                [RunStorage(organisation_id=organisation_id)], ignore_conflicts=True
            )
            storage.update(bytes_used=F("bytes_used") + due)
        found = storage.select_related("organisation").get()
    limit = found.payload_bytes_limit
    if limit is not None and found.bytes_used > limit:
        # Twice what was added, so that a lowered quota is reached, but not within one call.
        remove_oldest_payloads(organisation_id, limit, max_bytes=2 * due)


def settle_run_bytes() -> int:
    """Counts every organisation's runs again and enforces the quotas.

    Returns the number of payloads removed.
    """
    organisations = Organisation.objects.only("run_bytes_quota").order_by("pk")
    return sum(_settle(organisation) for organisation in organisations)


def _settle(organisation: Organisation) -> int:
    storage, _ = RunStorage.objects.get_or_create(organisation=organisation)
    limit = storage.payload_bytes_limit
    used = _count_again(organisation)
    if limit is None or used <= limit:
        return 0
    return remove_oldest_payloads(organisation.pk, limit, from_first_run=True)


def _count_again(organisation: Organisation) -> int:
    with transaction.atomic():
        # Processes that add to the count meanwhile wait for the lock.
        storage = RunStorage.objects.select_for_update().get(organisation=organisation)
        storage.bytes_used = stored_bytes(organisation.pk)
        storage.save(update_fields=["bytes_used"])
    return storage.bytes_used
