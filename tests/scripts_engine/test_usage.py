"""Usage by day: what counts, exactly once, over several processes and in spite of retention."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from accounts.models import Organisation
from hooks.models import Hook
from scripts_engine import usage
from scripts_engine.models import DailyUsage, Run, RunStatus, Trigger, UsagePosition
from scripts_engine.models.usage import NO_HOOK
from scripts_engine.runs.execution import run_script
from scripts_engine.runs.retention import forget_old_runs
from scripts_engine.usage import KEPT_DAYS, count_usage, forget_old_usage
from tests.concurrency import at_once
from tests.factories import event_with, hook_that, run_script_once, spec_of
from tests.settled import settle
from tests.working_queue import queue, work_all

# What a transaction has written is settled once it has ended.
pytestmark = pytest.mark.django_db(transaction=True)

TODAY = timezone.now().astimezone(UTC).date()


def call(hook: Hook, body: bytes = b"", at: datetime | None = None) -> Run:
    """A call of the hook, which ran at that time."""
    run = Run.objects.get(pk=run_script(spec_of(hook), event_with(body=body)).run_id)
    if at is not None:
        Run.objects.filter(pk=run.pk).update(started_at=at)
    return run


def count() -> int:
    settle()
    return count_usage()


def counted(**of: Any) -> tuple[int, int, int]:
    """Calls, failures and bytes of all days together."""
    rows = DailyUsage.objects.filter(**of)
    return (
        sum(row.calls for row in rows),
        sum(row.failures for row in rows),
        sum(row.bytes for row in rows),
    )


def test_calls_are_counted_by_day_script_and_hook(acme: Organisation) -> None:
    tea, pot = hook_that(acme, name="tea"), hook_that(acme, 'error("empty")', name="pot")
    yesterday = timezone.now() - timedelta(days=1)
    call(tea, b"four")
    call(tea, b"12")
    call(tea, at=yesterday)
    call(pot, b"123")
    run_script_once(tea.script)

    assert count() == 5
    rows = DailyUsage.objects.order_by("day", "calls", "failures", "bytes")
    none = NO_HOOK
    assert [
        (row.day, row.script_id, row.hook_id, row.calls, row.failures, row.bytes) for row in rows
    ] == [
        (yesterday.astimezone(UTC).date(), tea.script_id, tea.pk, 1, 0, 0),
        (TODAY, tea.script_id, none, 1, 0, 0),
        (TODAY, pot.script_id, pot.pk, 1, 1, 3),
        (TODAY, tea.script_id, tea.pk, 2, 0, 12),
    ]


def test_cpu_time_is_added_up(acme: Organisation) -> None:
    hook = hook_that(acme, "local x = 0; for i = 1, 3000000 do x = x + i end; return x")
    run = call(hook)
    count()

    row = DailyUsage.objects.get()
    assert run.cpu_ms > 1
    assert row.cpu_seconds == pytest.approx(run.cpu_ms / 1000)


def test_a_run_that_is_stopped_has_used_cpu_time(acme: Organisation) -> None:
    hook = hook_that(acme, "while true do end")
    hook.script.timeout_seconds = 0.3
    run = call(hook)

    assert run.status == RunStatus.TIMED_OUT
    assert run.cpu_ms > 1


def test_a_run_counts_once(hook: Hook) -> None:
    call(hook)
    first = count()
    second = count()
    call(hook)
    third = count()

    assert (first, second, third) == (1, 0, 1)
    assert counted() == (2, 0, 0)


def test_attempts_at_the_same_work_are_one_call(acme: Organisation) -> None:
    queue(hook_that(acme, 'error("down")'))
    work_all()

    assert Run.objects.count() == 5
    assert count() == 5
    # The payload was sent once.
    assert counted() == (1, 1, len(b"payload"))


def test_tests_drafts_cancelled_and_waiting_runs_are_not_counted(
    acme: Organisation, hook: Hook
) -> None:
    call(hook)
    Run.objects.update(trigger=Trigger.TEST)
    run_script_once(hook.script)
    Run.objects.exclude(trigger=Trigger.TEST).update(is_draft=True)
    cancelled = queue(hook)
    Run.objects.filter(pk=cancelled.pk).update(status=RunStatus.CANCELLED, ended_in=1)
    queue(hook)
    count()

    assert counted() == (0, 0, 0)


def test_batches_count_the_same(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "BATCH_RUNS", 2)
    for _ in range(7):
        call(hook, b"x")

    assert count() == 7
    assert counted() == (7, 0, 14)


def test_runs_of_one_transaction_are_counted_together(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "BATCH_RUNS", 2)
    for _ in range(5):
        call(hook)
    Run.objects.update(ended_in=7)

    assert count() == 5
    assert (count(), counted()) == (0, (5, 0, 0))


def test_a_count_that_fails_is_made_again(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    call(hook)

    def fail(rows: object) -> None:
        raise DatabaseError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(usage, "_add", fail)
        with pytest.raises(DatabaseError):
            count()
    before = counted()

    assert count() == 1
    assert (before, counted()) == ((0, 0, 0), (1, 0, 0))


def test_of_two_processes_that_count_one_adds(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one counts while this one has read what to add."""
    call(hook)
    advance = usage._advance
    started: list[bool] = []

    def be_overtaken(start: int, end: int) -> bool:
        if not started:
            started.append(True)
            assert count_usage() == 1
        return advance(start, end)

    monkeypatch.setattr(usage, "_advance", be_overtaken)

    assert count() == 0
    assert counted() == (1, 0, 0)


def test_several_processes_count_each_run_once(acme: Organisation) -> None:
    hook = hook_that(acme)
    for _ in range(20):
        call(hook, b"x")

    settle()
    at_once(4, lambda _: count_usage())
    assert counted() == (20, 0, 40)


def test_what_is_counted_stays_when_runs_are_deleted(acme: Organisation, hook: Hook) -> None:
    Organisation.objects.update(runs_kept=1)
    for _ in range(3):
        call(hook)
    count()

    assert forget_old_runs() == 2
    call(hook)
    count()
    assert counted() == (4, 0, 0)


def test_runs_that_are_not_counted_yet_are_not_deleted(acme: Organisation, hook: Hook) -> None:
    Organisation.objects.update(runs_kept=1)
    for _ in range(3):
        call(hook)
    before = forget_old_runs()
    count()

    assert (before, forget_old_runs()) == (0, 2)
    assert counted() == (3, 0, 0)


def test_usage_outlasts_runs_and_hooks(acme: Organisation, hook: Hook) -> None:
    call(hook)
    count()
    Run.objects.all().delete()
    hook.delete()

    assert counted() == (1, 0, 0)


def test_usage_is_kept_for_90_days(acme: Organisation, hook: Hook) -> None:
    now = timezone.now()
    for days in (0, KEPT_DAYS - 1, KEPT_DAYS, 400):
        call(hook, at=now - timedelta(days=days))
    count()
    new = counted()
    DailyUsage.objects.filter(day__lt=TODAY).update(day=TODAY - timedelta(days=KEPT_DAYS))

    assert (new, forget_old_usage(), counted()) == ((2, 0, 0), 1, (1, 0, 0))


def test_the_position_is_one_row(hook: Hook) -> None:
    for _ in range(2):
        call(hook)
        count()

    assert UsagePosition.objects.count() == 1
