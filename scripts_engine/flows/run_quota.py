"""What organisations' runs take is counted again, and held to the quota.

Recording counts too (``scripts_engine.flows.run_bytes``); this corrects what a killed process
forgot and what was deleted, and counts runs from before there was a count.
"""

import time
import uuid
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Func, IntegerField, TextField
from django.db.models.functions import Cast, Length

from accounts.models import Organisation, RunStorage
from scripts_engine.flows.remove_payloads import (
    BATCH_BYTES,
    BATCH_RUNS,
    PAUSE_TIMES,
    counted_bytes,
    remove_payloads_beyond,
    without_payloads,
)
from scripts_engine.models import Run
from scripts_engine.models.run import NEWEST_FIRST

_TEXTS = ("request_query", "unsaved_source", "error_traceback")
_JSON = ("request_headers", "response_headers", "logs", "host_calls")


class _Octets(Func):
    """How many bytes a text takes in UTF-8: ``Length`` counts characters."""

    function = "octet_length"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Its own ``octet_length`` came with SQLite 3.43."""
        template = "length(CAST(%(expressions)s AS BLOB))"
        return self.as_sql(compiler, connection, template=template, **context)


SIZES: dict[str, Any] = {
    "request_bytes": Length("request_body"),
    "response_bytes": Length("response_body"),
    "payload_bytes": sum(
        [
            Length("response_body"),
            *(_Octets(name) for name in _TEXTS),
            *(_Octets(Cast(name, TextField())) for name in _JSON),
        ],
        start=Length("request_body"),
    ),
}


def settle_run_bytes() -> int:
    """Counts every organisation's runs; how many payloads were removed beyond the quotas."""
    organisations = Organisation.objects.only("run_bytes_quota").order_by("pk")
    return sum(_settle(organisation) for organisation in organisations)


def _settle(organisation: Organisation) -> int:
    limit = organisation.run_bytes_limit
    removed = _count_earlier_runs(organisation, limit, counted_bytes(organisation.pk))
    used = _count_again(organisation)
    if limit is not None and used > limit:
        removed += remove_payloads_beyond(organisation.pk, limit, from_the_first_run=True)
    return removed


def _count_again(organisation: Organisation) -> int:
    RunStorage.objects.get_or_create(organisation=organisation)
    with transaction.atomic():
        # What processes add meanwhile waits for the lock, and is added to it.
        storage = RunStorage.objects.select_for_update().get(organisation=organisation)
        storage.bytes_used = counted_bytes(organisation.pk)
        storage.save(update_fields=["bytes_used"])
    return storage.bytes_used


class _Uncounted(NamedTuple):
    run_id: uuid.UUID
    size: int
    started_at: datetime


def _count_earlier_runs(organisation: Organisation, limit: int | None, used: int) -> int:
    """Runs from before there was a count, newest first: those beyond the quota lose their payload
    without being counted. How many these were.
    """
    removed = 0
    for batch in _uncounted_batches(organisation):
        began = time.monotonic()
        totals = list(accumulate((run.size for run in batch), initial=used))[1:]
        within = len(batch) if limit is None else bisect_right(totals, limit)
        kept, beyond = batch[:within], batch[within:]
        still_uncounted = Run.objects.filter(payload_bytes=None)
        still_uncounted.filter(pk__in=[run.run_id for run in kept]).update(**SIZES)
        if beyond:
            _say_removed_before(organisation, beyond[0].started_at)
            removed += without_payloads(run.run_id for run in beyond)
        used = totals[-1]
        time.sleep(PAUSE_TIMES * (time.monotonic() - began))
    return removed


def _uncounted_batches(organisation: Organisation) -> Iterator[Sequence[_Uncounted]]:
    """Newest first, ``BATCH_RUNS`` and ``BATCH_BYTES`` at most: counting a run writes it again."""
    runs = Run.objects.in_range_of(organisation.pk).filter(payload_bytes=None)
    sized = runs.annotate(size=SIZES["payload_bytes"]).order_by(*NEWEST_FIRST)
    before: dict[str, uuid.UUID] = {}
    while page := sized.filter(**before).values_list("pk", "size", "started_at")[:BATCH_RUNS]:
        batch: list[_Uncounted] = []
        for run in (_Uncounted(*row) for row in page):
            if batch and sum(each.size for each in batch) + run.size > BATCH_BYTES:
                yield batch
                batch = []
            batch.append(run)
        yield batch
        before = {"pk__lt": batch[-1].run_id}


def _say_removed_before(organisation: Organisation, started_at: datetime) -> None:
    storage, _ = RunStorage.objects.get_or_create(organisation=organisation)
    storage.removed_before = max(storage.removed_before or started_at, started_at)
    storage.save(update_fields=["removed_before"])
