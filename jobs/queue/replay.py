"""Queues runs that have ended again, and settles dead letters."""

import uuid
from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import Q

from accounts.flows.organisations import record_about_organisation
from core.http.origin import NOWHERE, Origin
from core.http.redaction import REDACTED
from jobs.audit_kinds import JobEvent
from jobs.models import RunLimits
from jobs.queue.enqueue import QueuedWork, enqueue_all
from jobs.queue.hidden_parts import event_of_queued
from scripts_engine.models import Run, Trigger
from scripts_engine.models.run import RunQuerySet
from scripts_engine.runs.spec import Author

MAX_REPLAYS = 1000
# Payloads may have 1 MiB each.
_REPLAYS_IN_MEMORY = 50


class NotReplayableError(Exception):
    """A run cannot be replayed: it has not ended, or it, its script or its payload is deleted."""

    def __init__(self, run_id: uuid.UUID, reason: str) -> None:
        super().__init__(f"Run {run_id} {reason}.")


def number_of_runs(number: int) -> str:
    return f"{number:,} run{'' if number == 1 else 's'}"


def replay_runs(
    runs: Sequence[Run],
    *,
    author: Author,
    origin: Origin = NOWHERE,
    are_dead_letters: bool = False,
) -> list[uuid.UUID]:
    """Queues the payloads of runs of one organisation again, for the versions that would run now.

    Replays in the given order, all or none. Clears the dead-letter flags of the runs and their
    later attempts. With ``are_dead_letters``, raises if any run is not a dead letter now. Ignores
    idempotency keys. Payloads are read here, a few at a time. Returns the ids of the queued runs.
    Raises ``NotReplayableError`` or ``QueueFullError``.
    """
    if len(runs) > MAX_REPLAYS:
        raise ValueError(f"more than {MAX_REPLAYS} runs")
    run_ids = [run.pk for run in runs]
    replays: list[uuid.UUID] = []
    with transaction.atomic():
        settled = _settle(runs)
        if are_dead_letters:
            for run in runs:
                if run.pk not in settled:
                    raise NotReplayableError(run.pk, "is not a dead letter any more")
        for start in range(0, len(run_ids), _REPLAYS_IN_MEMORY):
            batch = run_ids[start : start + _REPLAYS_IN_MEMORY]
            replays += enqueue_all(_replays(batch, author))
        if runs:
            organisation, reason = runs[0].organisation, number_of_runs(len(runs))
            kind = JobEvent.RUNS_REPLAYED
            record_about_organisation(kind, organisation, origin, reason)
    return replays


def with_payload(runs: RunQuerySet) -> RunQuerySet:
    """Those of the runs whose payload, which their first attempt has, was not removed."""
    is_first = Q(first_run__isnull=True, payload_removed_at__isnull=True)
    # The first attempt may be deleted before the later ones.
    is_later = Q(first_run__id__isnull=False, first_run__payload_removed_at__isnull=True)
    return runs.filter(is_first | (Q(first_run__isnull=False) & is_later))


def _settle(runs: Sequence[Run]) -> set[uuid.UUID]:
    """Clears the dead-letter flag of these runs and their later attempts.

    Returns the ids that had it. Locks the rows, so the second of two concurrent replays finds none.
    """
    later = Run.objects.later_attempts_of({run.first_attempt_id for run in runs})
    run_ids = [*(run.pk for run in runs), *later.order_by().values_list("pk", flat=True)]
    dead = Run.objects.filter(pk__in=run_ids, is_dead_letter=True)
    locked = dead.select_for_update().order_by("pk").values_list("pk", flat=True)
    found = set(locked)
    Run.objects.filter(pk__in=found).update(is_dead_letter=False)
    return found


def _replays(run_ids: Sequence[uuid.UUID], author: Author) -> Iterable[QueuedWork]:
    runs = Run.objects.select_related("script").in_bulk(run_ids)
    limits = RunLimits.objects.in_bulk({run.hook_id for run in runs.values() if run.hook_id})
    firsts = Run.objects.in_bulk([run.first_run_id for run in runs.values() if run.first_run_id])
    for run_id in run_ids:
        run = runs.get(run_id)
        if run is None:
            raise NotReplayableError(run_id, "is deleted")
        payload = run if run.first_run_id is None else firsts.get(run.first_run_id)
        if not run.has_ended:
            raise NotReplayableError(run_id, "has not ended")
        if run.is_draft:
            raise NotReplayableError(run_id, "is of a draft")
        if run.script.deleted_at is not None:
            raise NotReplayableError(run_id, "belongs to no script that exists")
        if payload is None or payload.payload_removed_at is not None:
            raise NotReplayableError(run_id, "has no payload any more")
        caller = limits.get(run.hook_id)
        event = event_of_queued(payload, None)
        if REDACTED.encode() in event.body:
            raise NotReplayableError(run_id, "has a payload of which its record hides a secret")
        # Values that the record hides cannot be sent again.
        headers = tuple(header for header in event.headers if header[1] != REDACTED)
        yield QueuedWork(
            organisation_id=run.organisation_id,
            script_id=run.script_id,
            version_id=(caller and caller.version_id) or run.script.current_version_id,
            event=event._replace(headers=headers),
            trigger=Trigger.REPLAY,
            hook_id=run.hook_id,
            started_by=author,
            max_attempts=None if caller is None else caller.max_attempts,
            replay_of_id=run.pk,
            is_of_alert=bool(run.is_of_alert),
        )


def dismiss_dead_letters(runs: Sequence[Run], *, origin: Origin = NOWHERE) -> int:
    """Settles dead letters that nobody wants to run again. Returns their number."""
    dismissed = 0
    for organisation in {run.organisation for run in runs}:
        run_ids = [run.pk for run in runs if run.organisation_id == organisation.pk]
        with transaction.atomic():
            dead = Run.objects.filter(pk__in=run_ids, is_dead_letter=True)
            number = dead.update(is_dead_letter=False)
            if number:
                kind = JobEvent.RUNS_DISMISSED
                record_about_organisation(kind, organisation, origin, number_of_runs(number))
        dismissed += number
    return dismissed
