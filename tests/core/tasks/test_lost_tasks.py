"""Tasks whose worker is gone, and workers that come back late."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from accounts import tasks
from core.tasks import attempts
from core.tasks.attempts import take_up_lost_tasks
from tests.concurrency import at_once
from tests.factories import work


def running(seconds: float, *worker_ids: str) -> DBTaskResult:
    """A task whose last attempt began so long ago."""
    tasks.send_new_device_notice.enqueue("8d0f5e4e-6f2b-4c0e-9d8a-0a4f5f1f2a3b", "")
    row = DBTaskResult.objects.latest("enqueued_at")
    row.status, row.worker_ids = "RUNNING", list(worker_ids or ["gone"])
    row.started_at = timezone.now() - timedelta(seconds=seconds)
    row.save()
    return row


def test_a_task_whose_lease_is_over_is_taken_up_and_done(db: None) -> None:
    row = running(seconds=61)

    assert take_up_lost_tasks() == 1
    row.refresh_from_db()
    assert row.status == "READY"
    assert "worker gone did not come back from attempt 1" in row.traceback
    work()
    row.refresh_from_db()
    assert (row.status, row.worker_ids) == ("SUCCESSFUL", ["gone", "worker"])


def test_a_task_that_began_before_the_clock_was_set_back_is_taken_up(db: None) -> None:
    running(seconds=-7200)

    assert take_up_lost_tasks() == 1


def test_a_task_of_a_worker_whose_clock_is_a_little_fast_is_left_to_it(db: None) -> None:
    running(seconds=-5)

    assert take_up_lost_tasks() == 0


def test_a_task_within_its_lease_is_left_to_its_worker(db: None) -> None:
    row = running(seconds=55)

    assert take_up_lost_tasks() == 0
    row.refresh_from_db()
    assert row.status == "RUNNING"


def test_a_task_that_loses_every_worker_fails_in_the_end(db: None, settings: Any) -> None:
    settings.TASK_RETRY_SECONDS = (0, 0)
    row = running(61, "first", "second", "third")

    assert take_up_lost_tasks() == 1
    row.refresh_from_db()
    assert row.status == "FAILED"
    assert row.exception_class_path.endswith("WorkerLostError")


def test_a_worker_that_comes_back_late_changes_nothing_any_more(db: None) -> None:
    late = running(seconds=61)
    take_up_lost_tasks()
    DBTaskResult.objects.get().claim("other")

    assert not attempts.succeed(late, None)
    row = DBTaskResult.objects.get()
    assert (row.status, row.worker_ids) == ("RUNNING", ["gone", "other"])


@pytest.mark.django_db(transaction=True)
def test_of_many_that_look_at_once_one_takes_each_task_up() -> None:
    lost = [running(seconds=61) for _ in range(5)]
    counts = at_once(4, lambda _: take_up_lost_tasks())

    assert sum(counts) == len(lost)
    assert DBTaskResult.objects.filter(status="READY").count() == len(lost)
