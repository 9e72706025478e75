"""Bounds how many rows of a kind an organisation has."""

import uuid

from django.db.models import QuerySet

from accounts.models import Organisation
from core.errors import LimitExceededError


def check_room(organisation_id: uuid.UUID, rows: QuerySet, most: int, what: str) -> None:
    """Raises ``LimitExceededError`` if there are as many rows as allowed, named by ``what``.

    Call it in the transaction that adds a row. Locks the organisation until its end, so that of two
    concurrent requests only one gets the last place.
    """
    Organisation.objects.select_for_update(no_key=True).get(pk=organisation_id)
    if rows.order_by()[:most].count() >= most:
        raise LimitExceededError(f"An organisation has at most {most:,} {what}.")
