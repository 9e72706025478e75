"""Keeps the payloads of an organisation's runs within its quota of bytes.

Recording counts them, in steps: a process keeps small amounts in memory, so that most calls pay
for one addition. Upkeep counts them again, which covers the amounts lost with a killed process, and
deleted runs.
"""

import logging
import math
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db import Error as DatabaseError
from django.db.models import F, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.models import Organisation
from core.database.batches import BATCH_BYTES
from core.database.ids import first_id_at
from core.waiting import in_thread
from scripts_engine.metrics import RUN_PAYLOADS_REMOVED
from scripts_engine.models import Run, RunStorage
from scripts_engine.models.run import OLDEST_FIRST, RunQuerySet
from scripts_engine.runs.retention import BATCH_RUNS, unneeded
from scripts_engine.runs.rows import NO_PAYLOAD

logger = logging.getLogger(__name__)

# How much, and for how long, a process keeps in memory per organisation.
STEP_BYTES = 1024 * 1024
STEP_SECONDS = 10.0
# The pause after a batch, as a multiple of the time that the batch took.
PAUSE_TIMES = 1.0
# Runs are recorded when they end, so not in the order of their start. No call takes longer.
_RECORDED_WITHIN = timedelta(minutes=2)


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


class _Payload(NamedTuple):
    run_id: uuid.UUID
    size: int
    started_at: datetime


def remove_oldest_payloads(
    organisation_id: uuid.UUID,
    limit: int,
    *,
    max_bytes: float = math.inf,
    from_first_run: bool = False,
) -> int:
    """Removes payloads, oldest first, until the organisation's payloads are within the limit, or
    ``max_bytes`` are removed. Returns the number of payloads removed.

    Adds up the stored sizes for each batch, because ``bytes_used`` does not reflect deletions.
    Continues where the last removal stopped, unless ``from_first_run`` asks for all runs.
    """
    removed = removed_bytes = 0
    while removed_bytes < max_bytes:
        began = time.monotonic()
        batch = _remove_batch(organisation_id, limit, max_bytes - removed_bytes, from_first_run)
        if not batch:
            break
        removed += len(batch)
        removed_bytes += sum(payload.size for payload in batch)
        if removed_bytes < max_bytes:
            time.sleep(PAUSE_TIMES * (time.monotonic() - began))
    return removed


@transaction.atomic
def _remove_batch(
    organisation_id: uuid.UUID, limit: int, max_bytes: float, from_first_run: bool
) -> Sequence[_Payload]:
    # The lock allows one removal per organisation at a time.
    storage = RunStorage.objects.select_for_update().get(pk=organisation_id)
    runs = Run.objects.in_range_of(organisation_id).filter(payload_bytes__gt=0)
    if storage.removed_before is not None and not from_first_run:
        runs = runs.filter(pk__gte=first_id_at(storage.removed_before - _RECORDED_WITHIN))
    used = _sum_of(runs)
    batch: Sequence[_Payload] = ()
    if used > limit:
        batch = _oldest_of(runs, min(used - limit, max_bytes, BATCH_BYTES))
    if batch:
        remove_payloads(payload.run_id for payload in batch)
        last = batch[-1].started_at
        storage.removed_before = max(storage.removed_before or last, last)
    storage.bytes_used = used - sum(payload.size for payload in batch)
    storage.save(update_fields=["removed_before", "bytes_used"])
    return batch


def _oldest_of(runs: RunQuerySet, wanted_bytes: float) -> Sequence[_Payload]:
    """The oldest payloads that together reach the wanted size: at least one."""
    # Upkeep may be deleting some of these runs at the same time.
    removable = unneeded(runs).order_by(*OLDEST_FIRST)
    oldest = removable.select_for_update(skip_locked=True, of=("self",))
    rows = oldest.values_list("pk", "payload_bytes", "started_at")[:BATCH_RUNS]
    payloads = [_Payload(*row) for row in rows]
    total = 0
    for count, payload in enumerate(payloads, 1):
        total += payload.size
        if total >= wanted_bytes:
            return payloads[:count]
    return payloads


def remove_payloads(run_ids: Iterable[uuid.UUID]) -> int:
    """Reduces these runs to their outlines, except those that are still needed.

    Returns the number of runs.
    """
    runs = unneeded(Run.objects.filter(pk__in=list(run_ids)))
    removed = runs.update(**NO_PAYLOAD, payload_removed_at=timezone.now())
    RUN_PAYLOADS_REMOVED.inc(removed)
    return removed


def stored_bytes(organisation_id: uuid.UUID) -> int:
    """Adds up the sizes of the organisation's payloads, from an index alone."""
    return _sum_of(Run.objects.in_range_of(organisation_id))


def _sum_of(runs: RunQuerySet) -> int:
    total: int = runs.aggregate(total=Coalesce(Sum("payload_bytes"), 0))["total"]
    return total
