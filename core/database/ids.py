"""Ids of rows: UUIDs as they are typed, and UUIDs that sort by the time they were made at."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q


def parse_uuid(text: str) -> uuid.UUID | None:
    """The UUID that the text is, in any of its spellings, or ``None``."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def first_id_at(moment: datetime) -> uuid.UUID:
    """The lowest UUID of version 7 that begins with that time."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return uuid.UUID(int=(milliseconds << 80) | (7 << 76) | (2 << 62))


# An id may be older than the row's time: a run's is made before it waits for a sandbox.
LONGEST_WAIT = timedelta(minutes=1)


def since(field: str, moment: datetime) -> Q:
    """Rows whose time is the moment or later. The time itself needs no index."""
    return Q(**{f"{field}__gte": moment, "pk__gte": first_id_at(moment - LONGEST_WAIT)})


def before(field: str, moment: datetime, *, inclusive: bool = False) -> Q:
    """Rows whose time is earlier than the moment, or equal to it when inclusive."""
    after: dict[str, Any] = {f"{field}__{'lte' if inclusive else 'lt'}": moment}
    return Q(**after, pk__lt=first_id_at(moment + timedelta(seconds=1)))
