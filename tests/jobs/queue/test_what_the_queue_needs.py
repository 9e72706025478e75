"""Neither upkeep nor the quota takes a run or a payload that the queue still needs."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation
from core.database.ids import first_id_at
from hooks.models import Hook
from jobs.models import QueueEntry, QueueKey
from jobs.queue.enqueue import QueuedWork, enqueue
from jobs.retention import forget_expired_queue_keys
from scripts_engine.models import Run, RunStatus, RunStorage, Trigger
from scripts_engine.runs.quota import remove_oldest_payloads, remove_payloads, settle_run_bytes
from scripts_engine.runs.retention import forget_old_runs
from tests.factories import event_with, hook_that
from tests.working_queue import count_all_usage, queue, work_all, work_queue

pytestmark = pytest.mark.django_db

LONG_AGO = timedelta(days=400)


@pytest.fixture(autouse=True)
def storage(acme: Organisation) -> RunStorage:
    return RunStorage.objects.create(organisation=acme)


def queue_long_ago(hook: Hook, number: int = 0) -> Run:
    """A run that has waited in the queue since long ago."""
    first = first_id_at(timezone.now() - LONG_AGO)
    work = QueuedWork(
        organisation_id=hook.organisation.pk,
        script_id=hook.script_id,
        version_id=hook.script.current_version_id,
        event=event_with(body=b"payload"),
        trigger=Trigger.HOOK,
        hook_id=hook.pk,
    )
    return Run.objects.get(pk=enqueue(work, run_id=type(first)(int=first.int + number)))


def test_a_run_that_waits_is_kept_however_old(hook: Hook) -> None:
    run = queue_long_ago(hook)
    kept = forget_old_runs()
    work_all()
    count_all_usage()

    assert kept == 0
    assert forget_old_runs() == 1
    assert not Run.objects.filter(pk=run.pk).exists()


def test_a_run_that_waits_is_kept_beyond_the_number(hook: Hook, settings: Any) -> None:
    settings.RUNS_KEPT_PER_ORGANISATION = 1
    waiting, ended = queue_long_ago(hook), queue_long_ago(hook, 1)
    QueueEntry.objects.filter(pk=ended.pk).delete()
    newest = queue(hook)

    assert forget_old_runs() == 1
    assert set(Run.objects.values_list("pk", flat=True)) == {waiting.pk, newest.pk}


def test_the_first_attempt_is_kept_while_a_later_one_needs_its_payload(acme: Organisation) -> None:
    first = queue_long_ago(hook_that(acme, "error('always')"))
    work_queue()
    assert QueueEntry.objects.get().payload_of == first.pk

    assert forget_old_runs() == 0
    work_all()
    count_all_usage()
    assert forget_old_runs() == 1
    assert not Run.objects.filter(pk=first.pk).exists()


def test_the_quota_takes_no_payload_that_waits(hook: Hook) -> None:
    waiting, ended = queue_long_ago(hook), queue(hook)
    work_queue()
    waiting, ended = Run.objects.get(pk=waiting.pk), Run.objects.get(pk=ended.pk)
    again = queue_long_ago(hook, 1)

    assert remove_oldest_payloads(hook.organisation.pk, 1) == 2
    assert Run.objects.get(pk=again.pk).payload_removed_at is None
    assert Run.objects.get(pk=ended.pk).payload_removed_at is not None

    (worked,) = work_queue()
    assert (worked.pk, worked.status) == (again.pk, RunStatus.SUCCEEDED)
    assert remove_oldest_payloads(hook.organisation.pk, 1, from_first_run=True) == 1


def test_the_quota_takes_no_payload_that_a_later_attempt_needs(acme: Organisation) -> None:
    first = queue(hook_that(acme, "error(params.get('body'))"), max_attempts=2)
    work_queue()

    assert remove_oldest_payloads(acme.pk, 1) == 0
    assert remove_payloads([first.pk]) == 0

    (last,) = work_all()
    assert "payload" in last.error_message
    assert remove_oldest_payloads(acme.pk, 1) == 2


def test_upkeep_counts_what_it_may_not_remove(hook: Hook, settings: Any) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 1
    run = queue(hook)

    assert settle_run_bytes() == 0
    kept = Run.objects.get(pk=run.pk)
    assert bytes(kept.request_body) == b"payload"
    assert RunStorage.objects.get().bytes_used == kept.payload_bytes > 0


def test_keys_are_forgotten_when_they_have_expired(hook: Hook) -> None:
    for key in ("one", "other"):
        enqueue(
            QueuedWork(
                organisation_id=hook.organisation.pk,
                script_id=hook.script_id,
                version_id=hook.script.current_version_id,
                event=event_with(),
                trigger=Trigger.QUEUE,
            ),
            key=key,
        )
    expired = QueueKey.objects.order_by("digest")[0]
    QueueKey.objects.filter(pk=expired.pk).update(expires_at=timezone.now())

    assert forget_expired_queue_keys() == 1
    assert not QueueKey.objects.filter(pk=expired.pk).exists()
    assert QueueKey.objects.count() == 1
