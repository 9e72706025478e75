"""Equal deliveries run once; the others get the reply of that run."""

import time
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from core.http.bulkhead import BulkheadFullError
from core.waiting.threads import DatabaseThreads
from hooks.flows import idempotency
from hooks.flows.idempotency import (
    DuplicateInProgressError,
    FirstDelivery,
    RepeatedReply,
    claim_delivery,
    delivery_digest,
)
from hooks.flows.retention import forget_expired_deliveries
from hooks.flows.run_call import run_call
from hooks.models import Hook, Idempotency, IdempotencyKey
from jobs.concurrent_runs import waiting_calls
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Run
from scripts_engine.runs import execution
from scripts_engine.runs.execution import FinishedRun
from scripts_engine.runs.quota import remove_payloads
from scripts_engine.runs.recording import RunNotRecordedError
from scripts_engine.runs.retention import forget_old_runs
from scripts_engine.runs.spec import NOBODY
from scripts_engine.sandbox import SandboxBusy, SandboxPool
from scripts_engine.secrets import set_secret
from tests.concurrency import at_once
from tests.eventually import eventually
from tests.factories import callable_hook, event_with, make_hook, make_script, rules_with
from tests.working_queue import count_all_usage

COUNT = 'return Reply{status = 201, headers = {["X-N"] = "n"}, body = store.increment("n")}'

pytestmark = pytest.mark.django_db


@pytest.fixture
def hook(acme: Organisation) -> Hook:
    return make_hook(make_script(acme, COUNT)).hook


def deliver(
    hook: Hook,
    event_id: str | None = "evt_1",
    body: bytes = b"",
    idempotency: str = Idempotency.EVENT_ID,
) -> FinishedRun | RepeatedReply:
    rules = rules_with(idempotency=idempotency)
    event = event_with(body=body, event_id=event_id, content=("POST", "", "", body))
    return run_call(callable_hook(hook, rules), rules, event)


def claim(hook: Hook, event_id: str = "evt_1", lease: float = 30) -> FirstDelivery | RepeatedReply:
    digest = delivery_digest(hook.pk, Idempotency.EVENT_ID, event_id=event_id, content=())
    assert digest is not None
    return claim_delivery(
        hook.pk,
        digest,
        organisation_id=hook.script.organisation_id,
        window_seconds=86_400,
        lease_seconds=lease,
    )


def run_now(hook: Hook, source: str) -> None:
    """Changes what the hook runs."""
    hook.script = update_script(hook.script, source=source, author=NOBODY)


def pass_time(seconds: float) -> None:
    """Every key is that much older."""
    [key] = IdempotencyKey.objects.all()
    for field in ("lease_ends_at", "expires_at", "first_wait_ends_at", "second_wait_ends_at"):
        setattr(key, field, getattr(key, field) - timedelta(seconds=seconds))
    key.save()


def test_a_duplicate_gets_the_recorded_reply_and_runs_nothing(hook: Hook) -> None:
    first = deliver(hook)
    again = deliver(hook)

    assert isinstance(first, FinishedRun)
    assert isinstance(again, RepeatedReply)
    assert (again.run_id, again.status, again.body) == (first.run_id, 201, b"1")
    assert ("X-N", "n") in again.headers
    assert Run.objects.count() == 1
    assert IdempotencyKey.objects.get().duplicates == 1
    assert isinstance(deliver(hook, "evt_2"), FinishedRun)


def test_the_key_belongs_to_the_hook(hook: Hook) -> None:
    other = make_hook(hook.script, "other").hook

    assert [type(deliver(each)) for each in (hook, other)] == [FinishedRun, FinishedRun]
    assert type(deliver(hook)) is type(deliver(other)) is RepeatedReply


def test_neither_id_nor_body_is_kept_with_the_key(hook: Hook) -> None:
    deliver(hook, "evt_secret")
    deliver(hook, None, b"body_secret", Idempotency.BODY_HASH)

    assert "secret" not in str(IdempotencyKey.objects.values())
    assert IdempotencyKey.objects.count() == 2


@pytest.mark.parametrize("event_id", [None, ""])
def test_a_call_without_the_id_runs(hook: Hook, event_id: str | None) -> None:
    replies = [deliver(hook, event_id), deliver(hook, event_id)]

    assert [type(reply) for reply in replies] == [FinishedRun, FinishedRun]
    assert not IdempotencyKey.objects.exists()


def test_equal_bodies_are_one_delivery_where_the_hook_says_so(hook: Hook) -> None:
    replies = [deliver(hook, None, body, Idempotency.BODY_HASH) for body in (b"a", b"a", b"b")]

    assert [type(reply) for reply in replies] == [FinishedRun, RepeatedReply, FinishedRun]


def test_a_hook_without_idempotency_runs_every_call(hook: Hook) -> None:
    replies = [
        deliver(hook, idempotency=Idempotency.NONE),
        deliver(hook, idempotency=Idempotency.NONE),
    ]

    assert [type(reply) for reply in replies] == [FinishedRun, FinishedRun]
    assert not IdempotencyKey.objects.exists()


@pytest.mark.parametrize(
    "failure",
    ['error("broken")', "return Reply{status = 500}", "return Reply{status = 599}"],
)
def test_after_a_failed_run_the_next_delivery_runs(hook: Hook, failure: str) -> None:
    run_now(hook, failure)
    failed = deliver(hook)
    run_now(hook, COUNT)
    second = deliver(hook)

    assert isinstance(failed, FinishedRun)
    assert isinstance(second, FinishedRun)
    assert isinstance(deliver(hook), RepeatedReply)
    assert Run.objects.count() == 2
    key = IdempotencyKey.objects.get()
    assert (key.run_id, key.runs) == (second.run_id, 2)


def test_after_a_run_that_timed_out_the_next_delivery_runs(hook: Hook) -> None:
    run_now(hook, "while true do end")
    hook.script.timeout_seconds = 0.2
    assert isinstance(deliver(hook), FinishedRun)

    run_now(hook, COUNT)
    assert isinstance(deliver(hook), FinishedRun)


def test_a_refusal_of_the_script_below_500_is_repeated(hook: Hook) -> None:
    run_now(hook, 'return Reply{status = 499, body = "no"}')
    deliver(hook)
    again = deliver(hook)

    assert isinstance(again, RepeatedReply)
    assert (again.status, again.body) == (499, b"no")


def test_where_nothing_ran_the_next_delivery_runs(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SandboxPool, "run", raising(SandboxBusy(retry_after=1)))
        with pytest.raises(SandboxBusy):
            deliver(hook)

    assert isinstance(deliver(hook), FinishedRun)


def test_where_the_run_is_not_recorded_the_next_delivery_runs(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(execution, "record_run", raising(RunNotRecordedError("disk full")))
        with pytest.raises(RunNotRecordedError):
            deliver(hook)

    assert isinstance(deliver(hook), FinishedRun)


def test_a_commit_whose_answer_was_lost_is_not_repeated(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = execution.record_run

    def record_and_fail(row: Any) -> None:
        record(row)
        raise RunNotRecordedError("connection lost")

    with monkeypatch.context() as patch:
        patch.setattr(execution, "record_run", record_and_fail)
        with pytest.raises(RunNotRecordedError):
            deliver(hook)

    assert isinstance(deliver(hook), RepeatedReply)
    assert Run.objects.count() == 1


def raising(error: Exception) -> Any:
    def fail(*arguments: Any, **named: Any) -> None:
        raise error

    return fail


def test_a_lost_delivery_is_run_again_when_its_lease_has_ended(hook: Hook, impatient: None) -> None:
    """As where its process was killed: there is a key, and no run."""
    lost = claim(hook, lease=30)
    with pytest.raises(DuplicateInProgressError):
        deliver(hook)
    pass_time(31)
    found = deliver(hook)

    assert isinstance(lost, FirstDelivery)
    assert isinstance(found, FinishedRun)
    assert found.run_id != lost.run_id
    assert isinstance(deliver(hook), RepeatedReply)


def test_a_lease_from_before_the_clock_was_set_back_has_ended(hook: Hook) -> None:
    claim(hook, lease=30)
    pass_time(-3600)

    assert isinstance(deliver(hook), FinishedRun)


def test_the_window_ends(hook: Hook) -> None:
    deliver(hook)
    pass_time(86_390)
    before = deliver(hook)
    pass_time(11)

    assert isinstance(before, RepeatedReply)
    assert isinstance(deliver(hook), FinishedRun)
    assert IdempotencyKey.objects.get().runs == 1


def test_a_window_does_not_end_before_its_run(hook: Hook, impatient: None) -> None:
    digest = delivery_digest(hook.pk, Idempotency.EVENT_ID, event_id="evt_1", content=())
    assert digest is not None
    organisation_id = hook.script.organisation_id
    claim_delivery(
        hook.pk, digest, organisation_id=organisation_id, window_seconds=1, lease_seconds=30
    )
    pass_time(2)

    with pytest.raises(DuplicateInProgressError):
        deliver(hook)
    assert not Run.objects.exists()


def test_a_reply_with_a_secret_is_repeated_as_its_status(hook: Hook) -> None:
    set_secret(hook.script.organisation, name="TOKEN", value="s3cr3t-value")
    run_now(hook, 'return Reply{status = 202, body = "x" .. secrets.get("TOKEN")}')
    first = deliver(hook)
    again = deliver(hook)

    assert isinstance(first, FinishedRun)
    assert first.outcome.reply is not None
    assert first.outcome.reply.body == b"xs3cr3t-value"
    assert isinstance(again, RepeatedReply)
    assert (again.status, again.headers, again.body) == (202, (), b"")


def test_a_header_with_a_secret_is_not_repeated_redacted(hook: Hook) -> None:
    set_secret(hook.script.organisation, name="TOKEN", value="s3cr3t-value")
    run_now(hook, 'return Reply{headers = {["X-T"] = secrets.get("TOKEN")}, body = "ok"}')
    deliver(hook)
    again = deliver(hook)

    assert isinstance(again, RepeatedReply)
    assert (again.status, again.headers, again.body) == (200, (), b"")


def test_a_reply_whose_payload_was_removed_is_repeated_as_its_status(hook: Hook) -> None:
    first = deliver(hook)
    remove_payloads([first.run_id])
    again = deliver(hook)

    assert isinstance(again, RepeatedReply)
    assert (again.run_id, again.status, again.body) == (first.run_id, 201, b"")


def test_a_delivery_whose_run_was_deleted_does_not_run_again(hook: Hook) -> None:
    first = deliver(hook)
    Organisation.objects.update(runs_kept=1)
    deliver(hook, "evt_2")
    count_all_usage()
    forget_old_runs()
    again = deliver(hook)

    assert not Run.objects.filter(pk=first.run_id).exists()
    assert isinstance(again, RepeatedReply)
    assert (again.run_id, again.status, again.body) == (first.run_id, 201, b"")


def test_upkeep_forgets_a_key_when_its_window_and_lease_have_ended(hook: Hook) -> None:
    deliver(hook)
    pass_time(86_399)
    kept = forget_expired_deliveries()
    pass_time(2)

    assert (kept, forget_expired_deliveries()) == (0, 1)
    assert Run.objects.count() == 1


def test_no_database_means_that_the_key_is_freed_by_its_lease(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery = claim(hook)
    assert isinstance(delivery, FirstDelivery)
    monkeypatch.setattr(FirstDelivery, "_key", raising(DatabaseUnavailable("gone")))

    delivery.free()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Duplicates wait for 0.2 s."""
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 0.2)


def finish(hook: Hook, delivery: FirstDelivery, after: float = 0) -> None:
    """Records the run of a delivery, as its own thread would."""
    time.sleep(after)
    execution.run_script(callable_hook(hook).saved_run(), event_with(), run_id=delivery.run_id)


@pytest.mark.django_db(transaction=True)
def test_a_duplicate_waits_for_the_reply(hook: Hook) -> None:
    def first_or_duplicate(number: int) -> Any:
        if number == 0:
            finish(hook, running, after=0.4)
            return None
        return deliver(hook)

    running = claim(hook)
    assert isinstance(running, FirstDelivery)
    _, waited = at_once(2, first_or_duplicate)

    assert isinstance(waited, RepeatedReply)
    assert (waited.run_id, waited.body) == (running.run_id, b"1")
    assert Run.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_waiting_duplicate_runs_if_the_first_fails(hook: Hook) -> None:
    running = claim(hook)
    assert isinstance(running, FirstDelivery)

    def first_or_duplicate(number: int) -> Any:
        if number == 0:
            time.sleep(0.3)
            return running.free()
        return deliver(hook)

    _, ran = at_once(2, first_or_duplicate)

    assert isinstance(ran, FinishedRun)
    assert Run.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_at_most_two_duplicates_wait(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 60.0)
    running = claim(hook)
    assert isinstance(running, FirstDelivery)
    with DatabaseThreads(4) as executor:
        duplicates = [executor.submit(deliver, hook) for _ in range(4)]
        eventually(lambda: sum(each.done() for each in duplicates) == 2)
        finish(hook, running)
        refused = [each.exception() for each in duplicates if each.exception() is not None]
        waited = [each.result() for each in duplicates if each.exception() is None]

    assert [type(error) for error in refused] == [DuplicateInProgressError] * 2
    assert [reply.run_id for reply in waited] == [running.run_id] * 2
    assert Run.objects.count() == 1


def test_places_to_wait_of_killed_processes_end_by_time(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 1.0)
    claim(hook, lease=60)
    IdempotencyKey.objects.update(
        first_wait_ends_at=timezone.now(), second_wait_ends_at=timezone.now() + timedelta(hours=1)
    )

    assert seconds_until_refused(hook) >= 1


def seconds_until_refused(hook: Hook) -> float:
    began = time.monotonic()
    with pytest.raises(DuplicateInProgressError):
        deliver(hook)
    return time.monotonic() - began


def test_no_duplicate_waits_where_this_process_has_no_place_for_it(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 60.0)
    claim(hook)
    waiting = waiting_calls()
    monkeypatch.setattr(waiting, "_take", raising(BulkheadFullError("calls", 1)))

    assert seconds_until_refused(hook) < idempotency.WAIT_SECONDS
    assert IdempotencyKey.objects.get().first_wait_ends_at <= timezone.now()


@pytest.mark.django_db(transaction=True)
def test_of_a_hundred_equal_calls_at_once_one_runs(hook: Hook) -> None:
    run_now(hook, f"local now = os.time() while os.time() < now + 2 do end {COUNT}")

    def outcome(number: int) -> Any:
        try:
            reply = deliver(hook)
        except DuplicateInProgressError:
            return "in progress"
        return reply.run_id

    outcomes = Counter(at_once(100, outcome))

    run = Run.objects.get()
    # More than three where threads started only after the run had ended.
    assert outcomes[run.pk] >= 3
    assert outcomes[run.pk] + outcomes["in progress"] == 100
    assert IdempotencyKey.objects.get().duplicates == outcomes[run.pk] - 1


@pytest.mark.django_db(transaction=True)
def test_of_a_hundred_calls_after_a_failure_one_runs(hook: Hook) -> None:
    failed = claim(hook)
    assert isinstance(failed, FirstDelivery)
    failed.free()
    digest = IdempotencyKey.objects.get().digest

    def is_first(number: int) -> bool:
        delivery = idempotency._Delivery(hook.pk, digest, 86_400, 30, None)
        return isinstance(delivery.first_or_repeated(), FirstDelivery)

    assert at_once(100, is_first).count(True) == 1
