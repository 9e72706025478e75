"""Counts the changes of rows, with who made the last one."""

import uuid
from collections.abc import Iterable

from django.utils import timezone

from accounts.audit import shown_actor
from accounts.models.revised import Revised
from core.http.origin import Origin

# Columns to save with a change.
REVISION = frozenset({"revision", "revised_at", "revised_by"})


def revise(row: Revised, organisation_id: uuid.UUID, origin: Origin) -> None:
    """Counts a change of the locked row, which the caller saves."""
    revise_all([row], organisation_id, origin)


def revise_all(rows: Iterable[Revised], organisation_id: uuid.UUID, origin: Origin) -> None:
    """Counts a change of each of the locked rows, which the caller saves."""
    by, at = shown_actor(origin, organisation_id).label, timezone.now()
    for row in rows:
        row.revision += 1
        row.revised_at = at
        row.revised_by = by
