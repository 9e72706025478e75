"""Runs that were queued before the clock was set back are due as long after that as before."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from core.database.ids import first_id_at
from scripts_engine.models import QueueEntry, Run

# Clocks of nodes may differ by less.
TOLERANCE = timedelta(minutes=1)
MOVED_AT_ONCE = 500


@transaction.atomic
def move_to_present() -> int:
    """Lets waiting runs from a later time than now count as queued now. Returns their number.

    Without it, they would wait until the clock shows the time at which they were queued.
    """
    now = timezone.now()
    waiting = QueueEntry.objects.waiting().filter(
        # By id too, which the primary key serves: usually, there is none.
        pk__gt=first_id_at(now + TOLERANCE),
        run__started_at__gt=now + TOLERANCE,
    )
    locked = waiting.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
    entries = list(locked.select_related("run")[:MOVED_AT_ONCE])
    for entry in entries:
        entry.due_at = now + max(entry.due_at - entry.run.started_at, timedelta(0))
    QueueEntry.objects.bulk_update(entries, ["due_at"])
    Run.objects.filter(pk__in=[entry.pk for entry in entries]).update(started_at=now)
    return len(entries)
