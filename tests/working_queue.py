"""Works the queue within a test: one round, in this thread."""

from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from scripts_engine.flows.queue.claim import Turns, claim_due_runs
from scripts_engine.flows.queue.finish import finish
from scripts_engine.flows.queue.perform import perform
from scripts_engine.models import QueueEntry, Run


def work_queue(slots: int = 4, turns: Turns | None = None) -> list[Run]:
    """Claims, runs and commits once. Returns the runs that ended, in the order of their claims."""
    claimed = claim_due_runs(slots, turns or Turns()).claimed
    finish([perform(each) for each in claimed])
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
