"""Deleting much without locking long."""

from django.db.models import QuerySet

BATCH = 500


def delete_in_batches(rows: QuerySet) -> int:
    """Deletes all of them, a batch a transaction; how many they were."""
    total = 0
    while batch := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        rows.model._default_manager.filter(pk__in=batch).delete()
        total += len(batch)
    return total
