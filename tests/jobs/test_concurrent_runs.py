"""At most so many runs of a hook, and of a script, are in progress at once."""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from core.http.bulkhead import BulkheadFullError
from core.waiting import GreenLoop
from hooks.flows.run_call import run_call
from hooks.models import Hook
from jobs import concurrent_runs
from jobs.concurrent_runs import (
    ConcurrencyLimits,
    RunLimitReachedError,
    run_counted,
    take_lease,
    waiting_calls,
)
from jobs.models import RunLease
from jobs.retention import forget_ended_leases
from scripts_engine.models import Run
from scripts_engine.runs import execution
from scripts_engine.runs.execution import FinishedRun
from scripts_engine.runs.recording import RunNotRecordedError
from tests.concurrency import at_once
from tests.factories import callable_hook, event_with, make_hook, make_script, rules_with
from tests.postgresql import execute as execute_on_server

pytestmark = pytest.mark.django_db


def limits_of(
    hook: Hook, *, of_hook: int | None = None, of_script: int | None = None
) -> ConcurrencyLimits:
    return ConcurrencyLimits(hook.pk, hook.script_id, of_hook, of_script)


def is_taken(limits: ConcurrencyLimits) -> bool:
    return take_lease(limits, run_seconds=11) is not None


@contextmanager
def counted(limits: ConcurrencyLimits, hook: Hook, run_seconds: float = 11) -> Iterator[None]:
    organisation_id = hook.script.organisation_id
    with run_counted(limits, organisation_id=organisation_id, run_seconds=run_seconds):
        yield


def call(hook: Hook, limit: int | None) -> Any:
    rules = rules_with(max_concurrent_runs=limit)
    return run_call(callable_hook(hook, rules), rules, event_with())


def test_a_run_beyond_the_limit_of_its_hook_is_refused(hook: Hook) -> None:
    other = make_hook(hook.script, "other").hook
    taken = [is_taken(limits_of(hook, of_hook=2)) for _ in range(3)]

    assert taken == [True, True, False]
    assert is_taken(limits_of(other, of_hook=2))


def test_the_hooks_of_a_script_share_its_limit(hook: Hook, acme: Organisation) -> None:
    other = make_hook(hook.script, "other").hook
    elsewhere = make_hook(make_script(acme, name="elsewhere")).hook
    taken = [is_taken(limits_of(each, of_script=2)) for each in (hook, other, other, hook)]

    assert taken == [True, True, False, False]
    assert is_taken(limits_of(elsewhere, of_script=2))


def test_both_limits_hold(hook: Hook) -> None:
    other = make_hook(hook.script, "other").hook
    of_hook = [is_taken(limits_of(hook, of_hook=1, of_script=2)) for _ in range(2)]
    of_other = [is_taken(limits_of(other, of_hook=3, of_script=2)) for _ in range(2)]

    assert (of_hook, of_other) == ([True, False], [True, False])


def test_a_lease_ends_with_its_run(hook: Hook) -> None:
    assert isinstance(call(hook, 1), FinishedRun)

    assert not RunLease.objects.exists()
    assert isinstance(call(hook, 1), FinishedRun)


def test_a_lease_ends_with_a_run_that_was_not_recorded(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(row: Any) -> None:
        raise RunNotRecordedError("disk full")

    monkeypatch.setattr(execution, "record_run", fail)
    with pytest.raises(RunNotRecordedError):
        call(hook, 1)

    assert not RunLease.objects.exists()


def test_the_lease_of_a_killed_process_stops_counting(hook: Hook) -> None:
    limits = limits_of(hook, of_hook=1)
    assert [is_taken(limits), is_taken(limits)] == [True, False]
    RunLease.objects.update(ends_at=timezone.now())

    assert is_taken(limits)
    assert forget_ended_leases() == 1
    assert RunLease.objects.count() == 1


def test_a_lease_outlasts_its_run_by_a_quarter_of_a_minute(hook: Hook) -> None:
    take_lease(limits_of(hook, of_hook=1), run_seconds=11)

    remaining = RunLease.objects.get().ends_at - timezone.now()
    assert timedelta(seconds=25) < remaining <= timedelta(seconds=26)


def test_a_lease_from_before_the_clock_was_set_back_does_not_count(hook: Hook) -> None:
    limits = limits_of(hook, of_hook=1)
    take_lease(limits, run_seconds=11)
    RunLease.objects.update(ends_at=timezone.now() + timedelta(hours=1))

    assert is_taken(limits)


def test_a_hook_without_a_limit_asks_the_database_nothing(
    hook: Hook, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0), counted(limits_of(hook), hook):
        pass


def test_a_call_at_the_limit_is_refused_after_a_second_and_says_when_to_try_again(
    hook: Hook,
) -> None:
    take_lease(limits_of(hook, of_hook=1), run_seconds=11)
    began = time.monotonic()
    with pytest.raises(RunLimitReachedError) as refused:
        call(hook, 1)

    assert time.monotonic() - began >= 1
    # The run in progress may take 11 s, of which the wait was one.
    assert 1 <= refused.value.retry_after_seconds <= 10
    assert not Run.objects.exists()
    assert RunLease.objects.count() == 1
    RunLease.objects.all().delete()
    assert isinstance(call(hook, 1), FinishedRun)


@pytest.mark.django_db(transaction=True)
def test_a_call_waits_for_a_run_that_ends_within_a_second(hook: Hook) -> None:
    limits = limits_of(hook, of_hook=1)

    def run(number: int) -> tuple[float, float]:
        with counted(limits, hook):
            began = time.monotonic()
            time.sleep(0.4)
            return began, time.monotonic()

    (_, first_ended), (second_began, _) = sorted(at_once(2, run))

    assert first_ended <= second_began


def test_a_call_does_not_wait_where_this_process_has_no_place_for_it(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise BulkheadFullError("calls", 1)

    monkeypatch.setattr(waiting_calls(), "_take", refuse)
    monkeypatch.setattr(concurrent_runs, "WAIT_SECONDS", 30.0)
    take_lease(limits_of(hook, of_hook=1), run_seconds=11)
    began = time.monotonic()
    with pytest.raises(RunLimitReachedError):
        call(hook, 1)

    assert time.monotonic() - began < 30


def test_a_lease_that_cannot_be_given_back_ends_by_itself(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: Any, **named: Any) -> None:
        raise DatabaseUnavailable("gone")

    with caplog.at_level(logging.WARNING), counted(limits_of(hook, of_hook=1), hook):
        monkeypatch.setattr(RunLease.objects, "filter", fail)

    assert "counts until it ends" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_of_a_hundred_runs_at_once_never_more_than_the_limit_begin(hook: Hook) -> None:
    limits = limits_of(hook, of_hook=7, of_script=5)

    assert at_once(100, lambda number: is_taken(limits)).count(True) == 5


@pytest.mark.django_db(transaction=True)
def test_a_hundred_runs_are_never_more_at_once_than_the_limit(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent_runs, "WAIT_SECONDS", 0.1)
    limits = limits_of(hook, of_hook=3)
    live: list[int] = []
    counts: list[int] = []

    def run(number: int) -> bool:
        try:
            with counted(limits, hook):
                live.append(number)
                counts.append(len(live))
                time.sleep(0.01)
                live.remove(number)
        except RunLimitReachedError:
            return False
        return True

    ran = at_once(100, run)

    assert ran.count(True) >= 3
    assert max(counts) <= 3
    assert not RunLease.objects.exists()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL")
@pytest.mark.django_db(transaction=True)
def test_a_connection_that_ends_while_the_run_is_recorded_leaves_it_not_recorded(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    def end_connection(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("INSERT") and Run._meta.db_table in sql:
            database = context["connection"].connection
            execute_on_server(f"SELECT pg_terminate_backend({database.info.backend_pid}, 5000)")
            # As with a server that is killed, libpq notices at once.
            while not database.closed:
                with suppress(psycopg.Error):
                    database.execute("SELECT 1")
        return execute(sql, params, many, context)

    def call_in_green_thread() -> None:
        with connection.execute_wrapper(end_connection):
            call(hook, 1)

    with ThreadPoolExecutor(2) as executor, pytest.raises(RunNotRecordedError):
        GreenLoop(most=2, executor=executor).run(call_in_green_thread)

    assert not Run.objects.exists()
    assert "counts until it ends" in caplog.text
