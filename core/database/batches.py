"""Deleting many rows without holding locks for long."""

import time
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.expressions import Combinable

BATCH = 500
# Of what is stored in large columns. SQLite frees the pages of each row one by one.
BATCH_BYTES = 4 * 1024 * 1024
# The pause after a batch, as a multiple of its duration; it lets others write to SQLite.
PAUSE_FACTOR = 1.0


def delete_in_batches(
    rows: QuerySet,
    *,
    size: int | None = None,
    order: Sequence[str] = ("pk",),
    row_bytes: Combinable | None = None,
) -> int:
    """Delete the rows in ``order``, one transaction per batch, and return their number.

    A batch has at most ``size`` rows and, if ``row_bytes`` tells the size of one, ``BATCH_BYTES``,
    but at least one row. Several nodes may do so at once: each skips the rows that another has
    locked.
    """
    total = 0
    while True:
        began = time.monotonic()
        deleted = _delete_batch(rows.order_by(*order), size or BATCH, row_bytes)
        if not deleted:
            return total
        total += deleted
        time.sleep(PAUSE_FACTOR * (time.monotonic() - began))


@transaction.atomic
def _delete_batch(rows: QuerySet, size: int, row_bytes: Combinable | None) -> int:
    locked = rows.select_for_update(skip_locked=True, of=("self",))
    if row_bytes is None:
        batch = list(locked.values_list("pk", flat=True)[:size])
    else:
        sized = locked.annotate(row_bytes=row_bytes).values_list("pk", "row_bytes")[:size]
        keys, sizes = zip(*sized, strict=True) if sized else ((), ())
        batch = list(keys[: max(1, bisect_right(list(accumulate(sizes)), BATCH_BYTES))])
    # Only keys are read, not what is to be deleted.
    rows.model._default_manager.filter(pk__in=batch).only("pk").delete()
    return len(batch)
