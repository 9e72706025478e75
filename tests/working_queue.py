"""Queues runs within a test, and works the queue: one round, in this thread."""

from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from hooks.models import Hook
from jobs.models import QueueEntry
from jobs.pushes import Push, QueueCapability
from jobs.queue.claim import Turns, claim_due_runs
from jobs.queue.enqueue import QueuedWork, enqueue
from jobs.queue.finish import finish
from jobs.queue.run_claimed import run_claimed
from scripts_engine.host.handler import RunHost
from scripts_engine.models import Run, Trigger, UsagePosition
from tests.factories import event_with


def queue(hook: Hook, **changes: object) -> Run:
    """Queues a run of the hook."""
    work = {
        "organisation_id": hook.organisation.pk,
        "script_id": hook.script_id,
        "version_id": hook.script.current_version_id,
        "event": event_with(body=b"payload"),
        "trigger": Trigger.HOOK,
        "hook_id": hook.pk,
    } | changes
    return Run.objects.get(pk=enqueue(QueuedWork(**work)))  # type: ignore[arg-type]


def work_queue(slots: int = 4, turns: Turns | None = None) -> list[Run]:
    """Claims, runs and commits once. Returns the runs that ended, in the order of their claims."""
    claimed = claim_due_runs(slots, turns or Turns()).claimed
    finish([run_claimed(each) for each in claimed])
    return [Run.objects.get(pk=each.run_id) for each in claimed]


def make_due(run_id: UUID | None = None) -> None:
    """Lets waiting runs be due now, instead of after their delay."""
    entries = QueueEntry.objects.waiting()
    if run_id is not None:
        entries = entries.filter(pk=run_id)
    entries.update(due_at=timezone.now() - timedelta(milliseconds=1))


def work_all(rounds: int = 20) -> list[Run]:
    """Works until nothing waits, without waiting out delays."""
    ended: list[Run] = []
    for _ in range(rounds):
        make_due()
        round_ended = work_queue()
        if not round_ended:
            return ended
        ended += round_ended
    raise AssertionError("the queue is never empty")


def count_all_usage() -> None:
    """Lets retention delete what has ended, as when its usage has been counted."""
    UsagePosition.objects.update_or_create(defaults={"counted_before": 2**62})


def pushes_of(host: RunHost) -> list[Push]:
    """What the script of this run has pushed."""
    queues = [each for each in host._capabilities if isinstance(each, QueueCapability)]
    return [push for queue in queues for push in queue.pushes]


def dead_letter_of(hook: Hook) -> Run:
    queue(hook, max_attempts=1)
    (dead,) = work_all()
    return dead
