"""Deletes old runs, by age and by number, as set for the organisation or the installation.

Runs that the queue needs stay, however old: those that have not ended, and the first attempt at
work that is not done.
"""

import uuid
from datetime import timedelta

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from accounts.models import Organisation
from core.database.batches import delete_in_batches
from core.database.ids import first_id_at
from scripts_engine.flows.idempotency import keep_outcomes
from scripts_engine.flows.run_payloads import BATCH_RUNS
from scripts_engine.models import Run
from scripts_engine.models.queue_entry import not_needed_by_queue
from scripts_engine.models.run import NEWEST_FIRST, OLDEST_FIRST


def forget_old_runs() -> int:
    """Deletes every organisation's runs beyond its limits. Returns the number of runs."""
    organisations = Organisation.objects.only("runs_kept_days", "runs_kept").order_by("pk")
    return sum(_forget_runs_of(organisation) for organisation in organisations)


def _forget_runs_of(organisation: Organisation) -> int:
    ends = [_end_by_age(organisation), _end_by_number(organisation)]
    end = max((end for end in ends if end is not None), default=None)
    if end is None:
        return 0
    keep_outcomes(organisation.pk, end)
    beyond = Run.objects.in_range_of(organisation.pk).filter(pk__lt=end)
    return delete_in_batches(
        not_needed_by_queue(beyond),
        size=BATCH_RUNS,
        order=OLDEST_FIRST,
        row_bytes=F("payload_bytes"),
    )


def _end_by_age(organisation: Organisation) -> uuid.UUID | None:
    """The smallest id to keep: ids begin with the time."""
    days = _or_default(organisation.runs_kept_days, settings.RUNS_KEPT_DAYS)
    return first_id_at(timezone.now() - timedelta(days=days)) if days else None


def _end_by_number(organisation: Organisation) -> uuid.UUID | None:
    """The id of the oldest run to keep, read from the index without counting."""
    number = _or_default(organisation.runs_kept, settings.RUNS_KEPT_PER_ORGANISATION)
    if not number:
        return None
    newest_first = Run.objects.in_range_of(organisation.pk).order_by(*NEWEST_FIRST)
    return newest_first.values_list("pk", flat=True)[number - 1 : number].first()


def _or_default(value: int | None, default: int) -> int:
    return default if value is None else value
