"""Keeps the payloads of an organisation's runs within its quota of bytes.

Recording counts them, in steps: a process keeps small amounts in memory, so that most calls pay
for one addition. Upkeep counts them again, which covers the amounts lost with a killed process,
deleted runs, and runs from before there was a quota.
"""

import logging
import threading
import time
import uuid
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from django.core.exceptions import ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db import Error as DatabaseError
from django.db.models import F

from accounts.models import Organisation, RunStorage
from core.database.batches import BATCH_BYTES
from core.green_threads import in_thread
from scripts_engine.flows.run_payloads import (
    BATCH_RUNS,
    PAUSE_TIMES,
    SIZES,
    remove_oldest_payloads,
    remove_payloads,
    stored_bytes,
)
from scripts_engine.models import Run
from scripts_engine.models.run import NEWEST_FIRST

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
    removed = _count_earlier_runs(organisation, limit, stored_bytes(organisation.pk))
    used = _count_again(organisation)
    if limit is not None and used > limit:
        removed += remove_oldest_payloads(organisation.pk, limit, from_first_run=True)
    return removed


def _count_again(organisation: Organisation) -> int:
    with transaction.atomic():
        # Processes that add to the count meanwhile wait for the lock.
        storage = RunStorage.objects.select_for_update().get(organisation=organisation)
        storage.bytes_used = stored_bytes(organisation.pk)
        storage.save(update_fields=["bytes_used"])
    return storage.bytes_used


class _UncountedRun(NamedTuple):
    run_id: uuid.UUID
    size: int
    started_at: datetime


def _count_earlier_runs(organisation: Organisation, limit: int | None, used: int) -> int:
    """Counts runs that were recorded before there was a quota, newest first.

    Those beyond the quota lose their payloads without being counted. Returns their number.
    """
    removed = 0
    for batch in _uncounted_batches(organisation):
        began = time.monotonic()
        totals = list(accumulate((run.size for run in batch), initial=used))[1:]
        beyond = () if limit is None else batch[bisect_right(totals, limit) :]
        if beyond:
            _note_removed_before(organisation, beyond[0].started_at)
            removed += remove_payloads(run.run_id for run in beyond)
        still_uncounted = Run.objects.filter(payload_bytes=None)
        still_uncounted.filter(pk__in=[run.run_id for run in batch]).update(**SIZES)
        used = totals[-1]
        time.sleep(PAUSE_TIMES * (time.monotonic() - began))
    return removed


def _uncounted_batches(organisation: Organisation) -> Iterator[Sequence[_UncountedRun]]:
    """Yields uncounted runs, newest first, in batches limited like transactions: counting a run
    rewrites its row.
    """
    runs = Run.objects.in_range_of(organisation.pk).filter(payload_bytes=None)
    sized = runs.annotate(size=SIZES["payload_bytes"]).order_by(*NEWEST_FIRST)
    before: dict[str, uuid.UUID] = {}
    while page := sized.filter(**before).values_list("pk", "size", "started_at")[:BATCH_RUNS]:
        batch: list[_UncountedRun] = []
        for run in (_UncountedRun(*row) for row in page):
            if batch and sum(each.size for each in batch) + run.size > BATCH_BYTES:
                yield batch
                batch = []
            batch.append(run)
        yield batch
        before = {"pk__lt": batch[-1].run_id}


def _note_removed_before(organisation: Organisation, started_at: datetime) -> None:
    storage, _ = RunStorage.objects.get_or_create(organisation=organisation)
    storage.removed_before = max(storage.removed_before or started_at, started_at)
    storage.save(update_fields=["removed_before"])
