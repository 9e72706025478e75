"""Claims are fair between organisations, and leases end."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from hooks.models import Hook
from jobs.models import QueueEntry, RunLease
from jobs.models.queue import MAX_LEASE
from jobs.queue.claim import Claimed, Turns, claim_due_runs, move_to_present
from jobs.queue.figures import oldest_due_at
from jobs.queue.finish import end_lost_runs, finish, give_back
from jobs.queue.pause import pause_organisation, pause_script, resume_organisation, resume_script
from jobs.queue.run_claimed import run_claimed
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Run, RunStatus, Script
from tests.factories import make_hook, make_organisation, make_script, past_run, set_rules
from tests.unavailable import execute_read_only, read_only_database
from tests.working_queue import queue, work_all, work_queue

pytestmark = pytest.mark.django_db


def another_hook(name: str = "Globex") -> Hook:
    return make_hook(make_script(make_organisation(name))).hook


def test_claims_take_turns_between_organisations(hook: Hook) -> None:
    other = another_hook()
    for _ in range(6):
        queue(hook)
    for _ in range(2):
        queue(other)

    claimed = claim_due_runs(4, Turns()).claimed

    organisations = Counter(each.entry.organisation_id for each in claimed)
    assert organisations == {hook.organisation.pk: 2, other.organisation.pk: 2}


def test_a_slot_goes_to_the_organisation_with_fewest_leases(hook: Hook) -> None:
    other = another_hook()
    for _ in range(10):
        queue(hook)
    claim_due_runs(3, Turns())
    queue(other)

    (claimed,) = claim_due_runs(1, Turns()).claimed

    assert claimed.entry.organisation_id == other.organisation.pk


def test_of_equals_the_one_that_waited_longest_is_next(hook: Hook) -> None:
    other, turns = another_hook(), Turns()
    for _ in range(3):
        queue(hook)
        queue(other)

    served = []
    for _ in range(4):
        (each,) = work_queue(1, turns)
        served.append(each.organisation_id)

    assert served[:2] == served[2:]
    assert len(set(served)) == 2


def test_one_organisation_may_have_all_slots_while_nobody_else_waits(hook: Hook) -> None:
    for _ in range(4):
        queue(hook)

    assert len(claim_due_runs(4, Turns()).claimed) == 4


def test_within_an_organisation_the_longest_due_is_first(hook: Hook) -> None:
    later = queue(hook)
    QueueEntry.objects.filter(pk=later.pk).update(due_at=timezone.now())
    first = queue(hook)
    QueueEntry.objects.filter(pk=first.pk).update(due_at=timezone.now() - timedelta(hours=1))

    assert [run.pk for run in work_queue(1)] == [first.pk]


def test_a_claimed_run_is_running_and_nobody_elses(hook: Hook) -> None:
    run = queue(hook)

    claim_due_runs(4, Turns())

    assert Run.objects.get(pk=run.pk).status == RunStatus.RUNNING
    assert claim_due_runs(4, Turns()).claimed == []
    lease = QueueEntry.objects.get().lease_ends_at
    assert lease is not None
    wanted = timedelta(seconds=hook.script.timeout_seconds + 15)
    assert abs(lease - timezone.now() - wanted) < timedelta(seconds=5)


def test_a_lost_run_runs_again_and_its_late_result_is_discarded(hook: Hook) -> None:
    run = queue(hook)
    (claimed,) = claim_due_runs(1, Turns()).claimed
    ended = run_claimed(claimed)
    QueueEntry.objects.update(lease_ends_at=timezone.now())

    assert end_lost_runs() == 1
    finish([ended])

    lost = Run.objects.get(pk=run.pk)
    assert (lost.status, lost.is_dead_letter) == (RunStatus.LOST, None)
    (again,) = work_all()
    assert (again.status, again.attempt, again.first_run_id) == ("succeeded", 2, run.pk)


def test_a_lost_run_that_finds_the_database_unavailable_does_not_hold_up_the_others(
    hook: Hook,
) -> None:
    """As where one page of the database is damaged, or a row is locked for long."""
    runs = [queue(hook) for _ in range(3)]
    claim_due_runs(4, Turns())
    now = timezone.now()
    for place, run in enumerate(runs):
        QueueEntry.objects.filter(pk=run.pk).update(lease_ends_at=now - timedelta(3 - place))
    table, bad = Run._meta.db_table, runs[0].pk.hex

    def refuse(execute: Any, sql: str, params: Any, *others: Any) -> Any:
        is_bad = sql.startswith("UPDATE") and table in sql
        if is_bad and bad in str(params).replace("-", ""):
            return execute_read_only(execute, sql, params, *others)
        return execute(sql, params, *others)

    with connection.execute_wrapper(refuse):
        assert end_lost_runs() == 2

    of_first_attempts = Run.objects.filter(attempt=1).values_list("pk", "status")
    assert dict(of_first_attempts) == {
        runs[0].pk: RunStatus.RUNNING,
        runs[1].pk: RunStatus.LOST,
        runs[2].pk: RunStatus.LOST,
    }
    assert end_lost_runs() == 1


@pytest.mark.django_db(transaction=True)
def test_lost_runs_are_left_to_later_while_the_database_is_unavailable(hook: Hook) -> None:
    for _ in range(4):
        queue(hook)
    claim_due_runs(4, Turns())
    QueueEntry.objects.update(lease_ends_at=timezone.now())

    with read_only_database(), pytest.raises(DatabaseUnavailable):
        end_lost_runs()

    assert end_lost_runs() == 4


def test_a_lease_from_before_the_clock_was_set_back_is_over(hook: Hook) -> None:
    queue(hook)
    claim_due_runs(1, Turns())
    QueueEntry.objects.update(lease_ends_at=timezone.now() + MAX_LEASE + timedelta(hours=1))

    assert end_lost_runs() == 1


def test_runs_from_before_the_clock_was_set_back_are_due_as_before(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(hook)
    queue(hook, delay_seconds=60)
    now = timezone.now() - timedelta(hours=2)
    monkeypatch.setattr(timezone, "now", lambda: now)
    assert claim_due_runs(4, Turns()).claimed == []

    assert move_to_present() == 2
    assert move_to_present() == 0
    assert len(claim_due_runs(4, Turns()).claimed) == 1
    assert QueueEntry.objects.waiting().get().due_at == now + timedelta(seconds=60)


def test_a_live_lease_is_left_alone(hook: Hook) -> None:
    queue(hook)
    claim_due_runs(1, Turns())

    assert end_lost_runs() == 0
    assert Run.objects.get().status == RunStatus.RUNNING


def test_a_run_that_did_not_start_is_given_back(hook: Hook) -> None:
    queue(hook)
    claimed = claim_due_runs(1, Turns()).claimed

    give_back(claimed)

    assert Run.objects.get().status == RunStatus.QUEUED
    (ended,) = work_queue()
    assert (ended.status, ended.attempt) == (RunStatus.SUCCEEDED, 1)


def test_a_run_that_is_given_back_keeps_its_place(hook: Hook) -> None:
    first, _ = queue(hook), queue(hook)
    give_back(claim_due_runs(1, Turns()).claimed)

    (claimed,) = claim_due_runs(1, Turns()).claimed

    assert claimed.run_id == first.pk


@pytest.mark.parametrize(
    "column", ["max_concurrent_runs", "script__max_concurrent_runs"], ids=["hook", "script"]
)
def test_runs_beyond_a_limit_stay_queued(hook: Hook, column: str) -> None:
    for _ in range(3):
        queue(hook)
    if column.startswith("script"):
        Script.objects.filter(pk=hook.script_id).update(max_concurrent_runs=1)
    else:
        set_rules(hook, max_concurrent_runs=1)

    claimed = claim_due_runs(4, Turns()).claimed

    assert len(claimed) == 1
    assert claim_due_runs(4, Turns()).claimed == []
    finish([run_claimed(each) for each in claimed])
    assert not RunLease.objects.exists()
    assert len(work_queue()) == 1


def test_a_limited_script_does_not_hold_up_the_others(hook: Hook) -> None:
    Script.objects.filter(pk=hook.script_id).update(max_concurrent_runs=1)
    for _ in range(3):
        queue(hook)
    free = queue(make_hook(make_script(hook.organisation, name="free")).hook)

    claimed = claim_due_runs(4, Turns()).claimed

    assert len(claimed) == 2
    assert free.pk in {each.run_id for each in claimed}


@pytest.mark.parametrize("of_script", [True, False], ids=["one script", "each hook"])
def test_hooks_of_a_script_at_its_limit_do_not_hold_up_the_others(
    hook: Hook, django_assert_max_num_queries: Any, *, of_script: bool
) -> None:
    script = hook.script
    hooks = [hook, *(make_hook(script).hook for _ in range(40))]
    Script.objects.filter(pk=script.pk).update(max_concurrent_runs=1)
    if not of_script:
        for each in hooks:
            set_rules(each, max_concurrent_runs=1)
    for each in hooks:
        queue(each)
    assert len(claim_due_runs(1, Turns()).claimed) == 1
    free = queue(make_hook(make_script(hook.organisation, name="free")).hook)

    # About ten, and on PostgreSQL some more: not one for each hook.
    with django_assert_max_num_queries(25):
        claimed = claim_due_runs(4, Turns()).claimed

    assert [each.run_id for each in claimed] == [free.pk]


def test_a_hook_at_its_limit_does_not_hold_up_its_script(hook: Hook) -> None:
    for _ in range(3):
        queue(hook)
    set_rules(hook, max_concurrent_runs=1)
    Script.objects.filter(pk=hook.script_id).update(max_concurrent_runs=3)
    free = [queue(make_hook(hook.script).hook).pk for _ in range(2)]

    claimed = claim_due_runs(4, Turns()).claimed

    assert len(claimed) == 3
    assert {each.run_id for each in claimed} > set(free)


def test_runs_of_a_paused_script_wait(hook: Hook) -> None:
    queue(hook)
    pause_script(hook.script)
    assert work_queue() == []

    resume_script(hook.script)

    assert len(work_queue()) == 1


def test_behind_runs_that_cannot_start_others_start_in_the_order_in_which_they_are_due(
    hook: Hook,
) -> None:
    scripts = [make_script(hook.organisation, name=name) for name in ("second", "third")]
    second, third = (make_hook(script).hook for script in scripts)
    for _ in range(3):
        queue(hook)
    waiting = [queue(each).pk for each in (third, second, second, third, second)]
    pause_script(hook.script)

    first = claim_due_runs(3, Turns()).claimed
    rest = claim_due_runs(8, Turns()).claimed

    assert [each.run_id for each in first] == waiting[:3]
    assert [each.run_id for each in rest] == waiting[3:]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite counts its steps")
@pytest.mark.parametrize("obstacle", ["paused", "disabled", "limit"])
def test_a_claim_takes_no_more_steps_for_more_runs_that_cannot_start(
    hook: Hook, obstacle: str
) -> None:
    rows = Script.objects.filter(pk=hook.script_id)
    if obstacle == "limit":
        rows.update(max_concurrent_runs=1)
        queue(hook)
        assert len(claim_due_runs(1, Turns()).claimed) == 1
    elif obstacle == "paused":
        rows.update(queue_paused_at=timezone.now())
    else:
        rows.update(is_enabled=False)
    free = make_hook(make_script(hook.organisation, name="free")).hook

    queue_many(hook, 20)
    few = steps_of_claim(queue(free).pk)
    queue_many(hook, 2000)
    many = steps_of_claim(queue(free).pk)

    assert many < 1.5 * few


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite counts its steps")
def test_a_claim_takes_no_more_steps_for_more_scripts_without_runs(hook: Hook) -> None:
    queue(hook)
    pause_script(hook.script)
    free = make_hook(make_script(hook.organisation, name="free")).hook

    few = steps_of_claim(queue(free).pk)
    make_many_scripts(hook.organisation, 1000)
    many = steps_of_claim(queue(free).pk)

    assert many < 1.5 * few


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite counts its steps")
def test_the_age_of_the_queue_takes_no_more_steps_for_more_scripts_without_runs(hook: Hook) -> None:
    queue(hook)
    pause_script(hook.script)
    free = queue(make_hook(make_script(hook.organisation, name="free")).hook)
    oldest: list[datetime | None] = []

    few = steps_of(lambda: oldest.append(oldest_due_at()))
    make_many_scripts(hook.organisation, 1000)
    many = steps_of(lambda: oldest.append(oldest_due_at()))

    assert oldest == [free.queue_entry.due_at] * 2
    assert many < 1.5 * few


def make_many_scripts(organisation: Organisation, number: int) -> None:
    Script.objects.bulk_create(
        Script(organisation=organisation, name=f"script {place}") for place in range(number)
    )


def queue_many(hook: Hook, number: int) -> None:
    now = timezone.now()
    runs = [past_run(hook, now, RunStatus.QUEUED) for _ in range(number)]
    Run.objects.bulk_create(runs)
    places = {"organisation": hook.organisation, "script": hook.script, "hook_id": hook.pk}
    QueueEntry.objects.bulk_create(
        QueueEntry(run=run, payload_of=run.pk, due_at=now, max_attempts=1, **places) for run in runs
    )


def steps_of_claim(expected: UUID) -> int:
    """How many instructions SQLite needs, in tens, to claim nothing but this run."""
    claimed: list[Claimed] = []
    steps = steps_of(lambda: claimed.extend(claim_due_runs(4, Turns()).claimed))
    assert [each.run_id for each in claimed] == [expected]
    return steps


def steps_of(call: Callable[[], object]) -> int:
    steps = []
    connection.ensure_connection()
    connection.connection.set_progress_handler(lambda: steps.append(1), 10)
    try:
        call()
    finally:
        connection.connection.set_progress_handler(None, 0)
    return len(steps)


def test_runs_of_a_paused_organisation_wait(hook: Hook) -> None:
    queue(hook)
    other = queue(another_hook())
    pause_organisation(hook.organisation)
    assert [run.pk for run in work_queue()] == [other.pk]

    resume_organisation(hook.organisation)

    assert len(work_queue()) == 1


@pytest.mark.parametrize("switch", ["script", "organisation"])
def test_runs_of_what_is_switched_off_wait(hook: Hook, switch: str) -> None:
    queue(hook)
    rows: Any = Script.objects.filter(pk=hook.script_id)
    column = "is_enabled"
    if switch == "organisation":
        rows, column = Organisation.objects.filter(pk=hook.organisation.pk), "is_active"
    rows.update(**{column: False})
    assert work_queue() == []

    rows.update(**{column: True})

    assert len(work_queue()) == 1


def test_a_deleted_script_takes_its_queued_runs_with_it(hook: Hook) -> None:
    queue(hook)

    delete_script(hook.script)

    assert Run.objects.get().status == RunStatus.CANCELLED
    assert not QueueEntry.objects.exists()


def test_a_deleted_hook_leaves_its_accepted_runs(hook: Hook) -> None:
    queue(hook)
    Hook.objects.filter(pk=hook.pk).update(deleted_at=timezone.now())

    assert [run.status for run in work_queue()] == [RunStatus.SUCCEEDED]


def test_the_next_due_time_is_told(hook: Hook) -> None:
    queue(hook, delay_seconds=60)

    found = claim_due_runs(4, Turns())

    assert found.claimed == []
    assert found.next_due_at is not None
    assert timedelta(seconds=50) < found.next_due_at - timezone.now() <= timedelta(seconds=60)


def test_turns_of_an_organisation_with_too_few_runs_pass_to_the_others(hook: Hook) -> None:
    second, third = another_hook(), another_hook("Initech")
    only = queue(hook)
    for _ in range(5):
        queue(second)
        queue(third)

    claimed = claim_due_runs(7, Turns()).claimed

    assert claimed[0].run_id == only.pk
    turns = [each.entry.hook_id for each in claimed[1:]]
    assert turns == [second.pk, third.pk] * 3
    assert len({each.run_id for each in claimed}) == 7


def test_a_claim_asks_as_often_for_many_organisations_as_for_two(hook: Hook) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no round trips")
    hooks = [hook, *(another_hook(f"Organisation {number}") for number in range(11))]

    def questions(number: int) -> int:
        for each in hooks[:number]:
            queue(each)
        with CaptureQueriesContext(connection) as asked:
            assert len(claim_due_runs(number, Turns()).claimed) == number
        return sum(each["sql"].lstrip().startswith(("SELECT", "WITH")) for each in asked)

    assert questions(12) == questions(2) == 2
