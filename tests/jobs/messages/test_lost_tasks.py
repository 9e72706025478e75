"""Tasks of lost workers, and workers that return late."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.flows.notices import send_new_device_notice
from jobs.messages import attempts
from jobs.messages.attempts import claim, requeue_lost
from jobs.models import Message
from tests.concurrency import at_once
from tests.factories import work


def running(seconds: float, *worker_ids: str) -> Message:
    """Returns a task whose last attempt began this many seconds ago."""
    send_new_device_notice.enqueue("8d0f5e4e-6f2b-4c0e-9d8a-0a4f5f1f2a3b", "")
    row = Message.objects.latest("enqueued_at")
    row.status, row.worker_ids = "RUNNING", list(worker_ids or ["gone"])
    row.started_at = timezone.now() - timedelta(seconds=seconds)
    row.save()
    return row


def test_a_task_with_an_expired_lease_is_requeued_and_done(db: None) -> None:
    row = running(seconds=61)

    assert requeue_lost() == 1
    row.refresh_from_db()
    assert row.status == "READY"
    assert "worker gone was lost during attempt 1" in row.traceback
    work()
    row.refresh_from_db()
    assert (row.status, row.worker_ids) == ("SUCCESSFUL", ["gone", "worker"])


def test_a_task_that_began_before_the_clock_was_set_back_is_requeued(db: None) -> None:
    running(seconds=-7200)

    assert requeue_lost() == 1


def test_a_task_of_a_worker_with_a_slightly_fast_clock_is_left_alone(db: None) -> None:
    running(seconds=-5)

    assert requeue_lost() == 0


def test_a_task_within_its_lease_is_left_alone(db: None) -> None:
    row = running(seconds=55)

    assert requeue_lost() == 0
    row.refresh_from_db()
    assert row.status == "RUNNING"


def test_a_task_that_loses_every_worker_fails(db: None, settings: Any) -> None:
    settings.TASK_RETRY_SECONDS = (0, 0)
    row = running(61, "first", "second", "third")

    assert requeue_lost() == 1
    row.refresh_from_db()
    assert row.status == "FAILED"
    assert "WorkerLostError" in row.traceback


def test_a_worker_that_returns_late_changes_nothing(db: None) -> None:
    late = running(seconds=61)
    requeue_lost()
    claim("default", 1, "other")

    assert not attempts.succeed(late)
    row = Message.objects.get()
    assert (row.status, row.worker_ids) == ("RUNNING", ["gone", "other"])


@pytest.mark.django_db(transaction=True)
def test_each_lost_task_is_requeued_once_by_concurrent_workers() -> None:
    lost = [running(seconds=61) for _ in range(5)]
    counts = at_once(4, lambda _: requeue_lost())

    assert sum(counts) == len(lost)
    assert Message.objects.filter(status="READY").count() == len(lost)
