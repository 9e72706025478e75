"""Deleting many rows without holding locks for long."""

import time
from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet

BATCH = 500
# The pause after a batch, as a multiple of its duration; it lets others write to SQLite.
PAUSE_FACTOR = 1.0


def delete_in_batches(
    rows: QuerySet, *, size: int | None = None, order: Sequence[str] = ("pk",)
) -> int:
    """Delete the rows in ``order``, one transaction per batch, and return their number.

    Several nodes may do so at once: each skips the rows that another has locked.
    """
    total = 0
    while True:
        began = time.monotonic()
        deleted = _delete_batch(rows.order_by(*order), size or BATCH)
        if not deleted:
            return total
        total += deleted
        time.sleep(PAUSE_FACTOR * (time.monotonic() - began))


@transaction.atomic
def _delete_batch(rows: QuerySet, size: int) -> int:
    locked = rows.select_for_update(skip_locked=True, of=("self",))
    batch = list(locked.values_list("pk", flat=True)[:size])
    rows.model._default_manager.filter(pk__in=batch).delete()
    return len(batch)
