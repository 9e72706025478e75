"""Deleting much without locking long."""

import time
from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet

BATCH = 500
# After a batch, a pause of so many times what the batch took: others who write to SQLite come in
# between.
PAUSE_TIMES = 1.0


def delete_in_batches(
    rows: QuerySet, *, size: int | None = None, order: Sequence[str] = ("pk",)
) -> int:
    """Deletes all of them in that order, a batch a transaction; how many they were.

    Two machines may do so at once: each takes rows that the other does not hold.
    """
    total = 0
    while True:
        began = time.monotonic()
        deleted = _delete_batch(rows.order_by(*order), size or BATCH)
        if not deleted:
            return total
        total += deleted
        time.sleep(PAUSE_TIMES * (time.monotonic() - began))


@transaction.atomic
def _delete_batch(rows: QuerySet, size: int) -> int:
    locked = rows.select_for_update(skip_locked=True, of=("self",))
    batch = list(locked.values_list("pk", flat=True)[:size])
    rows.model._default_manager.filter(pk__in=batch).delete()
    return len(batch)
