"""Results of the runner during outages of the database, and duties that fail."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.backends.signals import connection_created
from django.db.models import F

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from jobs.models import QueueEntry
from jobs.queue import finish as finishing
from jobs.queue import runner as runners
from jobs.queue.runner import Runner
from scripts_engine.models import Run, RunStatus, StoredValue
from tests.factories import hook_that, make_hook, make_script
from tests.jobs.queue.runners import COUNTS, is_empty, work_until
from tests.unavailable import execute_read_only
from tests.working_queue import queue

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def of_new_connections(wrapper: Callable[..., Any]) -> Iterator[None]:
    """All statements of connections that are opened meanwhile, as a runner's are, pass it."""

    def install(connection: Any, **others: Any) -> None:
        connection.execute_wrappers.append(wrapper)

    connection_created.connect(install)
    try:
        yield
    finally:
        connection_created.disconnect(install)


def test_a_result_survives_an_outage_of_the_database(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "OUTAGE_SECONDS", 0.0)
    queue(hook_that(acme, COUNTS))
    failures = [DatabaseUnavailable("gone")] * 3

    def fail(execute: Any, sql: str, *arguments: Any) -> Any:
        if failures and sql.startswith("DELETE"):
            raise failures.pop()
        return execute(sql, *arguments)

    with of_new_connections(fail):
        work_until(is_empty)

    assert failures == []
    assert Run.objects.get().status == RunStatus.SUCCEEDED
    assert StoredValue.objects.get().value == "1"


def test_results_wait_until_the_database_is_writable_again(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runners, "OUTAGE_SECONDS", 0.0)
    hook = hook_that(acme, COUNTS)
    for _ in range(2):
        queue(hook)
    refusals = list(range(5))

    def refuse(execute: Any, sql: str, *arguments: Any) -> Any:
        if refusals and sql.startswith("DELETE"):
            refusals.pop()
            return execute_read_only(execute, sql, *arguments)
        return execute(sql, *arguments)

    with of_new_connections(refuse):
        work_until(is_empty)

    assert refusals == []
    runs = Run.objects.values_list("status", "attempt")
    assert list(runs) == [(RunStatus.SUCCEEDED, 1)] * 2
    assert list(StoredValue.objects.values_list("value", flat=True)) == ["1"] * 2
    assert [each for each in caplog.records if each.exc_info] == []


def test_a_result_that_finds_the_database_unavailable_does_not_hold_up_the_others(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where one page of the database is damaged."""
    monkeypatch.setattr(runners, "OUTAGE_SECONDS", 0.0)
    bad = queue(hook_that(acme, COUNTS))
    others = [queue(make_hook(make_script(acme, COUNTS, f"s {each}")).hook) for each in range(6)]
    finish = runners.finish
    refused = []

    def refuse(ended: Any) -> None:
        if bad.pk in [each.run.pk for each in ended] and not are_others_done():
            refused.append(len(ended))
            raise DatabaseUnavailable("damaged")
        finish(ended)

    def are_others_done() -> bool:
        done = Run.objects.filter(pk__in=[each.pk for each in others], status=RunStatus.SUCCEEDED)
        return done.count() == len(others)

    monkeypatch.setattr(runners, "finish", refuse)
    work_until(is_empty, 2)

    assert refused
    assert set(Run.objects.values_list("status", "attempt")) == {(RunStatus.SUCCEEDED, 1)}
    assert set(StoredValue.objects.values_list("value", flat=True)) == {"1"}


def test_a_result_whose_lease_is_gone_is_discarded_after_an_outage(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "OUTAGE_SECONDS", 0.0)
    run = queue(hook_that(acme, COUNTS), max_attempts=1)
    refusals = [1]

    def refuse(execute: Any, sql: str, *arguments: Any) -> Any:
        if refusals and sql.startswith("DELETE"):
            refusals.pop()
            return execute_read_only(execute, sql, *arguments)
        return execute(sql, *arguments)

    def end_elsewhere() -> None:
        for entry in () if refusals else QueueEntry.objects.leased():
            assert entry.lease_id is not None
            finishing.end_as_lost(entry.pk, entry.lease_id)

    monkeypatch.setattr(runners, "close_old_connections", end_elsewhere)
    with of_new_connections(refuse):
        work_until(is_empty)

    run.refresh_from_db()
    assert (run.status, run.is_dead_letter) == (RunStatus.LOST, True)


def test_no_more_runs_start_than_results_can_wait(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "OUTAGE_SECONDS", 0.0)
    hook = hook_that(acme, COUNTS)
    for _ in range(6):
        queue(hook)
    finish, started = runners.finish, list[int]()

    def refuse(ended: Any) -> None:
        if ended and len(started) < 20:
            started.append(Run.objects.exclude(status=RunStatus.QUEUED).count())
            raise DatabaseUnavailable("disk full")
        finish(ended)

    monkeypatch.setattr(runners, "finish", refuse)
    # None is claimed ahead of a slot.
    monkeypatch.setattr(runners, "SHORT_RUN_SECONDS", 0.0)
    work_until(is_empty, 2)

    assert max(started) <= 2
    assert Counter(Run.objects.values_list("status", "attempt")) == {(RunStatus.SUCCEEDED, 1): 6}


def test_a_result_outlives_its_lease_during_an_outage(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "OUTAGE_SECONDS", 0.0)
    monkeypatch.setattr(runners, "LOST_CHECK_SECONDS", 0.0)
    queue(hook_that(acme, COUNTS))
    failures = [DatabaseUnavailable("gone")]

    def fail(execute: Any, sql: str, *arguments: Any) -> Any:
        if failures and sql.startswith("DELETE"):
            raise failures.pop()
        return execute(sql, *arguments)

    def let_leases_end() -> None:
        QueueEntry.objects.leased().update(lease_ends_at=F("due_at"))

    monkeypatch.setattr(runners, "close_old_connections", let_leases_end)
    with of_new_connections(fail):
        work_until(is_empty)

    run = Run.objects.get()
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 1)


def test_a_long_duty_does_not_hold_up_results(acme: Organisation) -> None:
    queue(hook_that(acme, COUNTS))

    def wait_for_the_result() -> None:
        deadline = time.monotonic() + 60
        while not is_empty():
            assert time.monotonic() < deadline, "the result waits for this duty"
            time.sleep(0.02)
        ended.append(Run.objects.get().status)
        runner.stop()

    ended: list[str] = []
    runner = Runner(1, duties=((wait_for_the_result, 1.0),))
    runner.run()

    assert ended == [RunStatus.SUCCEEDED]


def test_a_failing_duty_is_tried_again(acme: Organisation) -> None:
    failures: list[Exception] = [DatabaseUnavailable("gone"), ValueError("a defect")]

    def fail_twice() -> None:
        if failures:
            raise failures.pop()
        runner.stop()

    runner = Runner(1, duties=((fail_twice, 0.01),))
    runner.run()

    assert failures == []
