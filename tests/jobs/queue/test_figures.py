"""What the queue tells of itself: how many runs wait, since when, and whether it stands still."""

from datetime import timedelta

import pytest
from django.utils import timezone

from core.metrics.exposition import FigureCollector
from hooks.models import Hook
from jobs.models import QueueEntry
from jobs.models.queue import MAX_LEASE
from jobs.queue import figures
from jobs.queue.claim import Turns, claim_due_runs
from jobs.queue.figures import is_stalled, queue_figures, queue_metrics
from jobs.queue.pause import pause_organisation, pause_script
from scripts_engine.models import Script
from tests.factories import make_hook, make_organisation, make_script
from tests.working_queue import queue

pytestmark = pytest.mark.django_db


def states() -> tuple[int, int, int, int]:
    found = queue_figures()
    return found.waiting, found.delayed, found.paused, found.running


def due_since(seconds: float) -> None:
    QueueEntry.objects.update(due_at=timezone.now() - timedelta(seconds=seconds))


def test_an_empty_queue_has_no_age() -> None:
    assert queue_figures() == (0, 0, 0, 0, 0.0)
    assert not is_stalled()


def test_runs_are_counted_by_state_over_all_organisations(hook: Hook) -> None:
    queue(hook)
    claim_due_runs(1, Turns())
    queue(hook)
    queue(hook, delay_seconds=600)
    queue(make_hook(make_script(make_organisation("Globex"))).hook)
    paused = make_hook(make_script(make_organisation("Initech"))).hook
    queue(paused)
    pause_script(paused.script)

    assert states() == (2, 1, 1, 1)


def test_a_paused_or_inactive_organisation_and_a_disabled_script_are_paused(hook: Hook) -> None:
    queue(hook)
    Script.objects.update(is_enabled=False)
    disabled = states()
    Script.objects.update(is_enabled=True)
    hook.organisation.is_active = False
    hook.organisation.save()
    inactive = states()
    hook.organisation.is_active = True
    hook.organisation.save()
    pause_organisation(hook.organisation)

    assert disabled == inactive == states() == (0, 0, 1, 0)


def test_the_age_is_of_the_oldest_run_that_waits_for_a_slot_only(hook: Hook) -> None:
    other = make_hook(make_script(hook.organisation)).hook
    queue(other)
    due_since(500)
    pause_script(other.script)
    queue(hook)
    QueueEntry.objects.filter(script=hook.script).update(
        due_at=timezone.now() - timedelta(seconds=100)
    )

    assert 100 <= queue_figures().oldest_seconds < 200


def test_counting_stops(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "COUNTED_UP_TO", 2)
    for _ in range(3):
        queue(hook)
        queue(hook, delay_seconds=600)

    assert states() == (2, 2, 0, 0)


def test_work_that_nobody_does_is_a_standstill(hook: Hook) -> None:
    queue(hook)
    due_since(50)
    before = is_stalled()
    due_since(70)

    assert (before, is_stalled()) == (False, True)


def test_a_backlog_that_is_worked_is_no_standstill(hook: Hook) -> None:
    for _ in range(2):
        queue(hook)
    due_since(70)
    claim_due_runs(1, Turns())

    assert not is_stalled()


def test_the_lease_of_a_dead_runner_is_not_work(hook: Hook) -> None:
    for _ in range(2):
        queue(hook)
    due_since(70)
    claim_due_runs(1, Turns())
    now = timezone.now()
    QueueEntry.objects.leased().update(lease_ends_at=now)
    over = is_stalled()
    QueueEntry.objects.leased().update(lease_ends_at=now + 2 * MAX_LEASE)

    assert over
    assert is_stalled()


def test_paused_work_is_no_standstill(hook: Hook) -> None:
    queue(hook)
    due_since(70)
    pause_script(hook.script)

    assert not is_stalled()


@pytest.mark.django_db(transaction=True)
def test_metrics_tell_depth_and_age(hook: Hook) -> None:
    queue(hook)
    due_since(100)

    depth, oldest = FigureCollector(queue_metrics).collect()

    assert {sample.labels["state"]: sample.value for sample in depth.samples} == {
        "waiting": 1,
        "delayed": 0,
        "paused": 0,
        "running": 0,
    }
    assert (depth.name, oldest.name) == ("moonhook_queue_depth", "moonhook_queue_oldest_seconds")
    assert oldest.samples[0].value >= 100
