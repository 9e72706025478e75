"""Rows of a stretch of time, found by their primary key: a UUID of version 7 begins with it."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from core.database.ids import first_id_at

# An id may be older than the row's time: a run's is made before it waits for a sandbox.
LONGEST_WAIT = timedelta(minutes=1)


def since(field: str, moment: datetime) -> Q:
    """Rows whose time is the moment or later. The time itself needs no index."""
    return Q(**{f"{field}__gte": moment, "pk__gte": first_id_at(moment - LONGEST_WAIT)})


def before(field: str, moment: datetime, *, inclusive: bool = False) -> Q:
    """Rows whose time is earlier than the moment, or equal to it when inclusive."""
    after: dict[str, Any] = {f"{field}__{'lte' if inclusive else 'lt'}": moment}
    return Q(**after, pk__lt=first_id_at(moment + timedelta(seconds=1)))
