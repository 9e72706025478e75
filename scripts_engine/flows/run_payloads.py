"""Payloads of runs: which columns they are, how large they are, and how the oldest are removed.

A run without its payload stays as an outline: when it ran, for how long, and how it ended. What the
queue needs to run is never removed, even beyond the quota.
"""

import json
import math
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Func, IntegerField, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.models import RunStorage
from core.database.batches import BATCH_BYTES
from core.database.compiled_query import JsonText
from core.database.ids import first_id_at
from core.metrics.catalogue import RUN_PAYLOADS_REMOVED
from scripts_engine.models import Run, RunStatus
from scripts_engine.models.queue_entry import not_needed_by_queue
from scripts_engine.models.run import OLDEST_FIRST, RunQuerySet

# Limits of one transaction, because on SQLite it holds up all other writers.
BATCH_RUNS = 200
# The pause after a batch, as a multiple of the time that the batch took.
PAUSE_TIMES = 1.0
# Runs are recorded when they end, so not in the order of their start. No call takes longer.
_RECORDED_WITHIN = timedelta(minutes=2)

_BODIES = ("request_body", "response_body")
_TEXTS = ("request_query", "unsaved_source", "error_traceback")
_JSON = ("request_headers", "response_headers", "logs", "host_calls")

NO_PAYLOAD: dict[str, Any] = {
    **dict.fromkeys(_BODIES, b""),
    **dict.fromkeys(_TEXTS, ""),
    **{name: [] for name in _JSON},
    "payload_bytes": 0,
}


def measured(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a run as it is recorded: its JSON as text, and with its size columns."""
    texts = {name: json.dumps(row[name]) for name in _JSON if row[name]}
    request_bytes, response_bytes = (len(row[name]) for name in _BODIES)
    payload_bytes = (
        request_bytes
        + response_bytes
        + sum(len(row[name].encode()) for name in _TEXTS)
        # SQLite stores exactly this text, in which a character may take twelve bytes.
        + sum(map(len, texts.values()))
    )
    return {
        **row,
        **{name: JsonText(text) for name, text in texts.items()},
        "request_bytes": request_bytes,
        "response_bytes": response_bytes,
        "payload_bytes": payload_bytes,
    }


def without_reply(row: Mapping[str, Any], problem: str) -> dict[str, Any]:
    """The measured row of a run that failed after its script: nobody gets the reply."""
    headers = row["response_headers"]
    reply_bytes = row["response_bytes"] + (len(headers.text) if headers else 0)
    return {
        **row,
        "status": RunStatus.FAILED.value,
        "response_status": HTTPStatus.INTERNAL_SERVER_ERROR.value,
        "response_headers": [],
        "response_body": b"",
        "response_bytes": 0,
        "payload_bytes": row["payload_bytes"] - reply_bytes,
        "error_message": problem,
    }


class Octets(Func):
    """The length of a text in bytes of UTF-8; ``Length`` counts characters."""

    function = "octet_length"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite has ``octet_length`` only since 3.43."""
        template = "length(CAST(%(expressions)s AS BLOB))"
        return self.as_sql(compiler, connection, template=template, **context)


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
    removable = not_needed_by_queue(runs).order_by(*OLDEST_FIRST)
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
    """Reduces these runs to their outlines, except those that the queue needs.

    Returns the number of runs.
    """
    runs = not_needed_by_queue(Run.objects.filter(pk__in=list(run_ids)))
    removed = runs.update(**NO_PAYLOAD, payload_removed_at=timezone.now())
    RUN_PAYLOADS_REMOVED.inc(removed)
    return removed


def stored_bytes(organisation_id: uuid.UUID) -> int:
    """Adds up the sizes of the organisation's payloads, from an index alone."""
    return _sum_of(Run.objects.in_range_of(organisation_id))


def _sum_of(runs: RunQuerySet) -> int:
    total: int = runs.aggregate(total=Coalesce(Sum("payload_bytes"), 0))["total"]
    return total
