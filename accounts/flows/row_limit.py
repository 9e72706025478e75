"""Bounds how many rows of a kind an organisation has."""

import uuid

from django.db.models import QuerySet

from accounts.models import Organisation
from core.errors import LimitExceededError


def check_row_limit(
    organisation_id: uuid.UUID, rows: QuerySet, most: int, what: str, *, more: int = 1
) -> None:
    """Raises ``LimitExceededError`` if so many ``more`` rows than there are exceed ``most``.

    ``what`` names them. Call it in the transaction that adds the rows. Locks the organisation until
    its end, so that of two concurrent requests only one gets the last place.
    """
    Organisation.objects.select_for_update(no_key=True).get(pk=organisation_id)
    if rows.order_by()[:most].count() + more > most:
        raise LimitExceededError(f"An organisation has at most {most:,} {what}.")
