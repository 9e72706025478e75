"""Cancels, replays and pauses what is in the queue."""

import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from accounts.audit import Subject, record
from accounts.models import AuthEventKind, Organisation, SubjectKind
from core.http.origin import NOWHERE, Origin
from core.http.redaction import REDACTED
from scripts_engine.flows.author import Author
from scripts_engine.flows.queue.enqueue import QueuedWork, enqueue_all
from scripts_engine.flows.queue.hidden_parts import event_of_queued
from scripts_engine.flows.queue.wake_up import wake_runners
from scripts_engine.models import PausedQueue, QueueEntry, Run, RunStatus, Script, Trigger

MAX_REPLAYS = 1000
# Payloads may have 1 MiB each.
_REPLAYS_IN_MEMORY = 50
# What cancelling a run needs of it.
_TO_CANCEL = ("run__status", "run__script__name", "run__script__organisation__name")
# A call or a push that is on its way when its script is deleted has arrived by then.
_RECENTLY = timedelta(days=1)


class NotQueuedError(Exception):
    """The run is not waiting in the queue, so it cannot be cancelled."""


class NotReplayableError(Exception):
    """``run`` cannot be replayed: it has not ended, its script is deleted, or its payload gone."""

    def __init__(self, run: Run, reason: str) -> None:
        super().__init__(f"Run {run.pk} {reason}.")
        self.run = run


def cancel_run(run: Run, *, origin: Origin = NOWHERE) -> Run:
    """Takes a waiting run out of the queue. Raises ``NotQueuedError``."""
    with transaction.atomic():
        if not QueueEntry.objects.waiting().filter(pk=run.pk).delete()[0]:
            raise NotQueuedError
        Run.objects.filter(pk=run.pk).update(status=RunStatus.CANCELLED)
        _record(AuthEventKind.RUN_CANCELLED, run.script, origin, f"run {run.pk}")
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
    return Run.objects.filter(pk__in=run_ids).update(status=RunStatus.CANCELLED)


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


def replay_runs(
    runs: Sequence[Run],
    *,
    author: Author,
    origin: Origin = NOWHERE,
    are_dead_letters: bool = False,
) -> list[uuid.UUID]:
    """Queues the payloads of runs of one organisation again, for their scripts' current versions.

    In this order, all or nothing; dead letters among them, and later attempts at the same work, are
    settled. With ``are_dead_letters``, nothing is replayed that somebody else has settled.
    Idempotency does not apply. Payloads are read here, a few at a time. Returns the ids of the
    queued runs. Raises ``NotReplayableError`` or ``QueueFullError``.
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
                    raise NotReplayableError(run, "is no dead letter any more")
        for start in range(0, len(run_ids), _REPLAYS_IN_MEMORY):
            batch = run_ids[start : start + _REPLAYS_IN_MEMORY]
            replays += enqueue_all(_replays(batch, author))
        if runs:
            organisation, reason = runs[0].organisation, f"{len(runs)} runs"
            kind = AuthEventKind.RUNS_REPLAYED
            _record_of_organisation(kind, organisation, origin, reason)
    return replays


def _settle(runs: Sequence[Run]) -> set[uuid.UUID]:
    """The dead letters among the runs and later attempts at their work, which are so no more.

    Locked, so that of two who replay the same ones at once, the second finds none.
    """
    later = Run.objects.later_attempts_of({run.first_attempt_id for run in runs})
    run_ids = [*(run.pk for run in runs), *later.order_by().values_list("pk", flat=True)]
    dead = Run.objects.filter(pk__in=run_ids, is_dead_letter=True)
    locked = dead.select_for_update().order_by("pk").values_list("pk", flat=True)
    found = set(locked)
    Run.objects.filter(pk__in=found).update(is_dead_letter=False)
    return found


def _replays(run_ids: Sequence[uuid.UUID], author: Author) -> Iterable[QueuedWork]:
    runs = Run.objects.select_related("script", "hook").in_bulk(run_ids)
    firsts = Run.objects.in_bulk([run.first_run_id for run in runs.values() if run.first_run_id])
    for run_id in run_ids:
        run = runs[run_id]
        payload = run if run.first_run_id is None else firsts.get(run.first_run_id)
        if not run.has_ended:
            raise NotReplayableError(run, "has not ended")
        if run.script.deleted_at is not None or run.script_version_id is None:
            raise NotReplayableError(run, "belongs to no script that exists")
        if payload is None or payload.payload_removed_at is not None:
            raise NotReplayableError(run, "has no payload any more")
        event = event_of_queued(payload, None)
        if REDACTED.encode() in event.body:
            raise NotReplayableError(run, "has a payload of which its record hides a secret")
        # Values that the record hides cannot be sent again.
        headers = tuple(header for header in event.headers if header[1] != REDACTED)
        yield QueuedWork(
            organisation_id=run.organisation_id,
            script_id=run.script_id,
            version_id=run.script.current_version_id,
            event=event._replace(headers=headers),
            trigger=Trigger.REPLAY,
            hook_id=run.hook_id,
            started_by=author,
            max_attempts=None if run.hook is None else run.hook.max_attempts,
            replay_of_id=run.pk,
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
                kind = AuthEventKind.RUNS_DISMISSED
                _record_of_organisation(kind, organisation, origin, f"{number} runs")
        dismissed += number
    return dismissed


def pause_script(script: Script, *, origin: Origin = NOWHERE) -> None:
    """Lets the script's queued runs wait. Runs in progress end."""
    with transaction.atomic():
        running = Script.objects.filter(pk=script.pk, queue_paused_at__isnull=True)
        if running.update(queue_paused_at=timezone.now()):
            _record(AuthEventKind.QUEUE_PAUSED, script, origin)


def resume_script(script: Script, *, origin: Origin = NOWHERE) -> None:
    with transaction.atomic():
        paused = Script.objects.filter(pk=script.pk, queue_paused_at__isnull=False)
        if paused.update(queue_paused_at=None):
            _record(AuthEventKind.QUEUE_RESUMED, script, origin)
            transaction.on_commit(wake_runners)


def pause_organisation(organisation: Organisation, *, origin: Origin = NOWHERE) -> None:
    """Lets all queued runs of the organisation wait. Runs in progress end."""
    with transaction.atomic():
        _, is_new = PausedQueue.objects.get_or_create(organisation=organisation)
        if is_new:
            _record_of_organisation(AuthEventKind.QUEUE_PAUSED, organisation, origin)


def resume_organisation(organisation: Organisation, *, origin: Origin = NOWHERE) -> None:
    with transaction.atomic():
        if PausedQueue.objects.filter(organisation=organisation).delete()[0]:
            _record_of_organisation(AuthEventKind.QUEUE_RESUMED, organisation, origin)
            transaction.on_commit(wake_runners)


def _record(kind: AuthEventKind, script: Script, origin: Origin, reason: str = "") -> None:
    about = Subject(SubjectKind.SCRIPT, script.pk, script.name)
    record(kind, origin, about=about, organisation=script.organisation, reason=reason)


def _record_of_organisation(
    kind: AuthEventKind, organisation: Organisation, origin: Origin, reason: str = ""
) -> None:
    about = Subject(SubjectKind.ORGANISATION, organisation.pk, organisation.name)
    record(kind, origin, about=about, organisation=organisation, reason=reason)
