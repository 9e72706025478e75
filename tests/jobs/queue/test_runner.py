"""Runners work the queue, alone and beside each other."""

import threading
from collections import Counter
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.models import Organisation
from core.waiting import green_threads
from jobs.concurrent_runs import ConcurrencyLimits, take_lease
from jobs.metrics import ATTEMPTS, DEAD_LETTERS
from jobs.models import QueueEntry, RunLease
from jobs.queue import finish as finishing
from jobs.queue import runner as runners
from jobs.queue.claim import Turns, claim_due_runs
from jobs.queue.finish import finish
from jobs.queue.run_claimed import run_claimed
from jobs.queue.runner import Runner
from jobs.schedules.schedules import create_schedule, delete_schedule, run_schedule_now
from scripts_engine.models import Run, RunStatus, RunStorage, Script, StoredValue
from scripts_engine.runs import quota
from scripts_engine.runs.quota import stored_bytes
from scripts_engine.runs.spec import NOBODY
from scripts_engine.sandbox import SandboxBusy, SandboxPool
from tests.concurrency import at_once
from tests.database_connections import opened_connections
from tests.factories import hook_that, make_hook, make_organisation, make_script
from tests.jobs.queue.runners import COUNTS, is_empty, work_until
from tests.working_queue import queue

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_runner_works_until_nothing_is_left(acme: Organisation) -> None:
    hook = hook_that(acme, COUNTS)
    runs = [queue(hook) for _ in range(30)]

    work_until(is_empty)

    ended = Run.objects.filter(pk__in=[run.pk for run in runs])
    assert Counter(run.status for run in ended) == {RunStatus.SUCCEEDED: 30}
    assert StoredValue.objects.count() == 30
    assert set(StoredValue.objects.values_list("value", flat=True)) == {"1"}


def test_a_runner_that_has_ended_leaves_no_connection_open(acme: Organisation) -> None:
    queue(hook_that(acme, COUNTS))

    with opened_connections() as opened:
        work_until(is_empty)

    assert opened
    assert opened.still_open == []


def test_several_runners_run_each_run_once(acme: Organisation) -> None:
    hook = hook_that(acme, COUNTS)
    for _ in range(40):
        queue(hook)

    at_once(3, lambda number: work_until(is_empty, 2))

    assert Counter(Run.objects.values_list("status", flat=True)) == {RunStatus.SUCCEEDED: 40}
    assert set(StoredValue.objects.values_list("value", flat=True)) == {"1"}


def test_a_runner_that_is_told_to_stop_finishes_what_it_has(acme: Organisation) -> None:
    hook = hook_that(acme, "local t = 0 for i = 1, 2e7 do t = t + i end return 'late'")
    first = queue(hook)

    work_until(lambda: Run.objects.filter(status=RunStatus.RUNNING).exists(), 1)

    first.refresh_from_db()
    assert (first.status, bytes(first.response_body)) == (RunStatus.SUCCEEDED, b"late")
    assert is_empty()


def test_a_run_that_finds_no_sandbox_goes_back(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_in_sandbox, refusals = SandboxPool.run, [SandboxBusy(1)]

    def refuse_once(pool: SandboxPool, *arguments: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return run_in_sandbox(pool, *arguments)

    monkeypatch.setattr(SandboxPool, "run", refuse_once)
    monkeypatch.setattr(runners, "NOT_STARTED_SECONDS", 0.0)
    run = queue(hook_that(acme, COUNTS))

    work_until(is_empty)

    run.refresh_from_db()
    assert (run.status, run.attempt, refusals) == (RunStatus.SUCCEEDED, 1, [])


LONG = "local ends = os.time() + 3 while os.time() < ends do end return 'late'"


def claims_ahead(runner: Runner) -> None:
    """As if many short runs had ended."""
    runner._run_seconds = 0.001


def test_what_was_claimed_ahead_goes_back_while_the_slots_are_taken(acme: Organisation) -> None:
    hook = hook_that(acme, LONG)
    for _ in range(4):
        queue(hook)
    seen: list[tuple[int, int]] = []

    def watch() -> None:
        counts = Counter(Run.objects.values_list("status", flat=True))
        seen.append((counts[RunStatus.RUNNING], counts[RunStatus.QUEUED]))
        if seen[-1] == (2, 2):
            runner.stop()

    runner = Runner(2, duties=((watch, 0.02),))
    claims_ahead(runner)
    runner.run()

    assert (4, 0) in seen
    statuses = Counter(Run.objects.values_list("status", "attempt"))
    assert statuses == {(RunStatus.SUCCEEDED, 1): 2, (RunStatus.QUEUED, 1): 2}
    assert QueueEntry.objects.filter(lease_id=None, attempt=1).count() == 2


def test_a_runner_that_stops_gives_back_what_it_claimed_ahead(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "AHEAD_SECONDS", 60.0)
    hook = hook_that(acme, LONG)
    for _ in range(2):
        queue(hook)

    def stop_when_claimed() -> None:
        if Run.objects.filter(status=RunStatus.RUNNING).count() == 2:
            runner.stop()

    runner = Runner(1, duties=((stop_when_claimed, 0.02),))
    claims_ahead(runner)
    runner.run()

    statuses = Counter(Run.objects.values_list("status", flat=True))
    assert statuses == {RunStatus.SUCCEEDED: 1, RunStatus.QUEUED: 1}


def test_of_what_was_claimed_ahead_an_organisation_without_slots_starts_first(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = hook_that(acme, COUNTS)
    other = make_hook(make_script(make_organisation("Globex"), COUNTS)).hook
    for _ in range(6):
        queue(busy)
    run_claimed, started = runners.run_claimed, list[Any]()

    def watched(claimed: Any) -> Any:
        started.append(claimed.entry.script_id)
        if len(started) == 1:
            queue(other)
        elif len(started) <= 3:
            while not QueueEntry.objects.leased().filter(script=other.script_id).exists():
                green_threads.sleep(0.005)
        return run_claimed(claimed)

    monkeypatch.setattr(runners, "run_claimed", watched)
    monkeypatch.setattr(runners, "SHORT_RUN_SECONDS", 60.0)
    monkeypatch.setattr(runners, "AHEAD_PER_SLOT", 1)
    monkeypatch.setattr(runners, "AHEAD_SECONDS", 60.0)
    runner = Runner(2, duties=((lambda: is_empty() and runner.stop(), 0.02),))
    claims_ahead(runner)
    runner.run()

    # Two had slots, and another one got that of the first before the new run was claimed.
    assert started.index(other.script_id) == 3
    assert len(started) == 7


def test_a_defect_of_the_bookkeeping_ends_the_runner(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(runners, "claim_due_runs", fail)
    runner = Runner(1, duties=((lambda: None, 60.0),))

    with pytest.raises(RuntimeError, match="a defect"):
        runner.run()


def test_a_runner_that_gives_up_ends_its_runs_as_lost(acme: Organisation) -> None:
    source = "local ends = os.time() + 3 while os.time() < ends do end return 'late'"
    run = queue(hook_that(acme, source))

    def give_up_when_running() -> None:
        if Run.objects.filter(status=RunStatus.RUNNING).exists():
            runner.stop()
            runner.abandon()

    runner = Runner(1, duties=((give_up_when_running, 0.02),))
    runner.run()

    attempts = list(Run.objects.order_by("attempt").values_list("status", "attempt"))
    assert attempts == [(RunStatus.LOST, 1), (RunStatus.QUEUED, 2)]
    assert QueueEntry.objects.get().payload_of == run.pk


def test_a_run_whose_end_is_unknown_is_lost_at_once(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*arguments: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(runners, "run_claimed", break_down)
    queue(hook_that(acme, COUNTS), max_attempts=1)

    work_until(is_empty)

    run = Run.objects.get()
    assert (run.status, run.is_dead_letter) == (RunStatus.LOST, True)


def test_a_result_that_cannot_be_stored_does_not_hold_up_the_others(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_claimed = runners.run_claimed
    bad = queue(hook_that(acme, COUNTS), max_attempts=1)
    good = queue(make_hook(make_script(acme, COUNTS, "good")).hook)

    def spoil(claimed: Any) -> Any:
        ended = run_claimed(claimed)
        if claimed.run_id == bad.pk:
            ended.columns["response_status"] = -1
        return ended

    monkeypatch.setattr(runners, "run_claimed", spoil)

    work_until(is_empty)

    statuses = dict(Run.objects.values_list("pk", "status"))
    assert statuses == {bad.pk: RunStatus.LOST, good.pk: RunStatus.SUCCEEDED}


@pytest.mark.parametrize(
    "source",
    ["error('no')", "queue.push(params.get('script_id'), 'x', {delay = 60}) return 1"],
    ids=["retried", "pushing"],
)
def test_bytes_are_counted_after_the_commit_that_holds_the_database(
    acme: Organisation,
    source: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(quota, "STEP_SECONDS", 0.0)
    run = queue(hook_that(acme, source))

    work_until(lambda: Run.objects.get(pk=run.pk).has_ended)

    assert QueueEntry.objects.count() == 1
    assert RunStorage.objects.get().bytes_used == stored_bytes(acme.pk)
    assert [each.message for each in caplog.records if "not counted" in each.message] == []


def test_what_is_rolled_back_is_not_counted(acme: Organisation) -> None:
    def counted() -> tuple[float, float]:
        return ATTEMPTS.labels("dead-letter")._value.get(), DEAD_LETTERS._value.get()

    queue(hook_that(acme, "error('no')"), max_attempts=1)
    ended = [run_claimed(each) for each in claim_due_runs(1, Turns()).claimed]
    before = counted()

    with transaction.atomic():
        finish(ended)
        transaction.set_rollback(True)
    assert counted() == before
    finish(ended)

    assert counted() == (before[0] + 1, before[1] + 1)


def test_runs_go_on_when_their_schedule_is_deleted(acme: Organisation) -> None:
    schedule = create_schedule(make_script(acme, "error('no')"), cron="0 0 1 1 *")
    run_schedule_now(schedule, author=NOBODY)
    delete_schedule(schedule)
    other = queue(hook_that(make_organisation("Globex"), COUNTS))

    work_until(lambda: Run.objects.get(pk=other.pk).has_ended and Run.objects.count() == 3)

    ended, waiting = Run.objects.filter(organisation=acme).order_by("attempt")
    assert (ended.status, waiting.status) == (RunStatus.FAILED, RunStatus.QUEUED)
    assert (waiting.attempt, waiting.schedule_id) == (2, schedule.pk)


def test_a_run_whose_next_attempt_cannot_be_stored_does_not_stop_the_queue(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = queue(hook_that(acme, "error('no')"))
    other = queue(hook_that(make_organisation("Globex"), COUNTS))
    record_all = finishing.record_all

    def refuse(rows: Any) -> None:
        if any(each.run["first_run_id"] == bad.pk for each in rows):
            raise IntegrityError
        record_all(rows)

    monkeypatch.setattr(finishing, "record_all", refuse)
    Script.objects.filter(organisation=acme).update(max_concurrent_runs=1)

    work_until(is_empty)

    statuses = dict(Run.objects.values_list("pk", "status"))
    assert statuses == {bad.pk: RunStatus.LOST, other.pk: RunStatus.SUCCEEDED}
    assert Run.objects.get(pk=bad.pk).is_dead_letter
    assert not RunLease.objects.exists()


def test_claims_do_not_wait_for_another_that_counts_runs_of_the_script(
    acme: Organisation,
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    hook = hook_that(acme, COUNTS)
    Script.objects.filter(pk=hook.script_id).update(max_concurrent_runs=2)
    queue(hook)
    barrier = threading.Barrier(2)

    def count_or_claim(number: int) -> int:
        with transaction.atomic():
            if number == 0:
                take_lease(ConcurrencyLimits(None, hook.script_id, None, 2), run_seconds=1)
            barrier.wait(60)
            found = 0 if number == 0 else len(claim_due_runs(1, Turns()).claimed)
            barrier.wait(60)
            return found

    assert at_once(2, count_or_claim) == [0, 0]
    assert len(claim_due_runs(1, Turns()).claimed) == 1


def test_a_limit_of_runs_at_once_holds_over_runners(acme: Organisation) -> None:
    source = """
    local now = store.increment("now")
    local most = store.get("most") or 0
    if now > most then store.set("most", now) end
    local t = 0 for i = 1, 2e5 do t = t + i end
    store.increment("now", -1)
    """
    hook = hook_that(acme, source)
    Script.objects.filter(pk=hook.script_id).update(max_concurrent_runs=1)
    for _ in range(8):
        queue(hook)

    at_once(2, lambda number: work_until(is_empty, 3))

    assert StoredValue.objects.get(key=b"most").value == "1"
    assert Run.objects.filter(status=RunStatus.SUCCEEDED).count() == 8
