"""Takes runs that wait out of the queue."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from core.database.commit_order import THIS_COMMIT
from core.http.origin import NOWHERE, Origin
from jobs.audit_kinds import JobEvent
from jobs.models import QueueEntry
from scripts_engine.flows.scripts import record_about_script
from scripts_engine.models import Run, RunStatus, Script

# What cancelling a run needs of it.
_TO_CANCEL = ("run__status", "run__script__name", "run__script__organisation__name")
_CANCELLED = {"status": RunStatus.CANCELLED, "ended_in": THIS_COMMIT}
# A call or a push that is on its way when its script is deleted has arrived by then.
_RECENTLY = timedelta(days=1)


class NotQueuedError(Exception):
    """The run is not waiting in the queue, so it cannot be cancelled."""


def cancel_run(run: Run, *, origin: Origin = NOWHERE) -> Run:
    """Takes a waiting run out of the queue. Raises ``NotQueuedError``."""
    with transaction.atomic():
        if not QueueEntry.objects.waiting().filter(pk=run.pk).delete()[0]:
            raise NotQueuedError
        Run.objects.filter(pk=run.pk).update(**_CANCELLED)
        record_about_script(JobEvent.RUN_CANCELLED, run.script, origin, f"run {run.pk}")
    run.refresh_from_db()
    return run


def cancel_entries(entries: QuerySet[QueueEntry], *, origin: Origin = NOWHERE) -> tuple[int, int]:
    """Takes those that still wait out of the queue, one by one.

    Returns their number, and that of the runs which had started or ended.
    """
    cancelled = others = 0
    # All of a queue may be meant, with payloads of gigabytes.
    narrow = entries.select_related(None).select_related("run__script__organisation")
    for entry in narrow.only(*_TO_CANCEL):
        try:
            cancel_run(entry.run, origin=origin)
        except NotQueuedError:
            others += 1
        else:
            cancelled += 1
    return cancelled, others


def cancel_runs_of(script: Script) -> int:
    """Takes all waiting runs of a deleted script out of the queue, in the caller's transaction."""
    waiting = QueueEntry.objects.waiting().filter(script=script)
    run_ids = list(waiting.select_for_update(of=("self",)).values_list("pk", flat=True))
    QueueEntry.objects.filter(pk__in=run_ids).delete()
    return Run.objects.filter(pk__in=run_ids).update(**_CANCELLED)


def cancel_orphans() -> int:
    """Cancels runs that were queued while their script was being deleted. Returns their number."""
    deleted = Script.objects.filter(
        Exists(QueueEntry.objects.waiting().filter(script=OuterRef("pk"))),
        deleted_at__gte=timezone.now() - _RECENTLY,
    )
    return sum(_cancel_orphans_of(script) for script in deleted)


@transaction.atomic
def _cancel_orphans_of(script: Script) -> int:
    return cancel_runs_of(script)
