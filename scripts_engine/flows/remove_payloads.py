"""The oldest payloads of an organisation are removed; what remains of a run is its outline."""

import math
import time
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Coalesce, Length
from django.utils import timezone

from accounts.models import RunStorage
from core.database.ids import first_id_at
from core.metrics.catalogue import RUN_PAYLOADS_REMOVED
from scripts_engine.models import Run
from scripts_engine.models.run import OLDEST_FIRST, RunQuerySet

# Of a transaction, which on SQLite keeps other writers waiting.
BATCH_RUNS = 200
BATCH_BYTES = 4 * 1024 * 1024
# After a batch, a pause of so many times what the batch took.
PAUSE_TIMES = 1.0
# A run may be recorded after others that started later: a call takes less than this.
_RECORDED_WITHIN = timedelta(minutes=2)

NO_PAYLOAD: dict[str, Any] = {
    "unsaved_source": "",
    "request_query": "",
    "request_headers": [],
    "request_body": b"",
    "response_headers": [],
    "response_body": b"",
    "logs": [],
    "host_calls": [],
    "error_traceback": "",
    "payload_bytes": 0,
}


class _Payload(NamedTuple):
    run_id: uuid.UUID
    size: int
    started_at: datetime


def remove_payloads_beyond(
    organisation_id: uuid.UUID,
    limit: int,
    *,
    at_most_bytes: float = math.inf,
    from_the_first_run: bool = False,
) -> int:
    """Removes payloads, oldest first, until the organisation is within its limit, or so many bytes
    are free; how many payloads.

    What is there is added up for each batch anew: ``bytes_used`` does not know what was deleted.
    In transactions of ``BATCH_RUNS`` and ``BATCH_BYTES`` at most. Starts where the last
    removal ended, unless it is to look through all runs.
    """
    removed = freed = 0
    while freed < at_most_bytes:
        began = time.monotonic()
        batch = _remove_batch(organisation_id, limit, at_most_bytes - freed, from_the_first_run)
        if not batch:
            break
        removed += len(batch)
        freed += sum(payload.size for payload in batch)
        if freed < at_most_bytes:
            time.sleep(PAUSE_TIMES * (time.monotonic() - began))
    return removed


def counted_bytes(organisation_id: uuid.UUID) -> int:
    """What the payloads take, read off an index alone."""
    return _sum_of(Run.objects.in_range_of(organisation_id))


def _sum_of(runs: RunQuerySet) -> int:
    total: int = runs.aggregate(total=Coalesce(Sum("payload_bytes"), 0))["total"]
    return total


@transaction.atomic
def _remove_batch(
    organisation_id: uuid.UUID, limit: int, most_bytes: float, from_the_first_run: bool
) -> Sequence[_Payload]:
    # Its lock: one removal an organisation at a time.
    storage = RunStorage.objects.select_for_update().get(pk=organisation_id)
    runs = Run.objects.in_range_of(organisation_id).filter(payload_bytes__gt=0)
    if storage.removed_before is not None and not from_the_first_run:
        runs = runs.filter(pk__gte=first_id_at(storage.removed_before - _RECORDED_WITHIN))
    used = _sum_of(runs)
    batch: Sequence[_Payload] = ()
    if used > limit:
        batch = _oldest_of(runs, min(used - limit, most_bytes, BATCH_BYTES))
    if batch:
        without_payloads(payload.run_id for payload in batch)
        last = batch[-1].started_at
        storage.removed_before = max(storage.removed_before or last, last)
    storage.bytes_used = used - sum(payload.size for payload in batch)
    storage.save(update_fields=["removed_before", "bytes_used"])
    return batch


def _oldest_of(runs: RunQuerySet, wanted_bytes: float) -> Sequence[_Payload]:
    # Upkeep may be deleting some of them at this moment.
    oldest = runs.select_for_update(skip_locked=True, of=("self",)).order_by(*OLDEST_FIRST)
    rows = oldest.values_list("pk", "payload_bytes", "started_at")[:BATCH_RUNS]
    payloads = [_Payload(pk, size or 0, started_at) for pk, size, started_at in rows]
    return _enough(payloads, wanted_bytes)


def _enough(payloads: Sequence[_Payload], wanted_bytes: float) -> Sequence[_Payload]:
    """The first ones that make up so many bytes: one at least."""
    total = 0
    for count, payload in enumerate(payloads, 1):
        total += payload.size
        if total >= wanted_bytes:
            return payloads[:count]
    return payloads


def without_payloads(run_ids: Iterable[uuid.UUID]) -> int:
    """Empties these runs down to their outlines; how many they were."""
    runs = Run.objects.filter(pk__in=list(run_ids))
    sizes = {
        "request_bytes": Coalesce("request_bytes", Length("request_body")),
        "response_bytes": Coalesce("response_bytes", Length("response_body")),
    }
    removed = runs.update(**NO_PAYLOAD, **sizes, payload_removed_at=timezone.now())
    RUN_PAYLOADS_REMOVED.inc(amount=removed)
    return removed
