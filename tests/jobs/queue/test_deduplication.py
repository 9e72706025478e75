"""Whether a push with a key is new is true when its run is committed."""

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.db import connections
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Organisation
from jobs import pushes as queue_of_host
from jobs.models import QueueEntry, QueueKey
from jobs.models.queue import MAX_LEASE
from jobs.pushes import QueueCapability
from jobs.queue.claim import Turns, claim_due_runs
from jobs.queue.deduplication import KeyTakenError, claim_key
from jobs.queue.finish import finish
from jobs.queue.run_claimed import run_claimed
from jobs.retention import forget_expired_queue_keys
from scripts_engine.host.capabilities import RecordedRun
from scripts_engine.host.handler import RunHost
from scripts_engine.models import Run, RunStatus, Script
from scripts_engine.runs.rows import measured
from scripts_engine.sandbox import CallNote, HostCallError, SandboxBusy
from tests.client import Client
from tests.concurrency import at_once
from tests.factories import (
    hook_that,
    make_hook,
    make_script,
    reply_of,
    run_lua,
    run_script_once,
)
from tests.hooks.calls import path_of
from tests.jobs.queue.test_pushes import pushed
from tests.working_queue import make_due, pushes_of, queue, work_queue

pytestmark = pytest.mark.django_db

PUSHERS = 16
PUSHES = "local id, is_new = queue.push('target', '', {key = 'k'}) return {id, is_new}"
# So that the others push before the first one has ended.
PUSHES_AND_GOES_ON = PUSHES.replace("return", "for i = 1, 1e6 do end return")


class Pushed(NamedTuple):
    run_id: uuid.UUID
    is_new: bool


@pytest.fixture(autouse=True)
def target(acme: Organisation) -> Script:
    return make_script(acme, "return 1", "target")


class Pusher:
    """A run in progress of a script."""

    def __init__(self, script: Script) -> None:
        self.run_id = uuid7()
        pushing = RecordedRun(self.run_id, script.pk, 0)
        self.host = RunHost(script.organisation_id, recorded=pushing)

    def push(self, key: str = "k", seconds: float = 60) -> Pushed:
        arguments = [b"target", b"", None, key.encode(), None]
        deadline = time.monotonic() + seconds
        run_id, is_new = self.host("queue.push", arguments, deadline=deadline, note=CallNote())
        return Pushed(uuid.UUID(run_id.decode()), is_new)

    def commit(self) -> None:
        for effect in self.host.effects():
            effect.store()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls a function instead of the first pause of a push that waits."""

    def instead_of_pauses(call: Callable[[], object]) -> None:
        def pauses(seconds: float) -> Any:
            call()
            yield

        monkeypatch.setattr(queue_of_host, "growing_pauses", pauses)

    return instead_of_pauses


def make_pusher(organisation: Organisation, source: str, seconds: float) -> Script:
    script = make_script(organisation, source)
    script.timeout_seconds = seconds
    return script


def run_in_turn(script: Script) -> Run:
    """Runs the script, as soon as there is a slot for it: those that wait for a key have one."""
    while True:
        try:
            return run_script_once(script)
        except SandboxBusy:
            continue


# --- Concurrent pushes ---------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_runs_that_push_a_key_one_is_new_and_every_id_exists(
    acme: Organisation,
) -> None:
    pushers = [make_pusher(acme, PUSHES_AND_GOES_ON, seconds=20) for _ in range(PUSHERS)]
    runs = at_once(PUSHERS, lambda number: run_in_turn(pushers[number]))

    (queued,) = pushed()
    replies = sorted(reply_of(run) for run in runs)
    assert replies == [f'["{queued.pk}",false]'] * (PUSHERS - 1) + [f'["{queued.pk}",true]']


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ending", ["error('no')", "return Retry{}", "while true do end"])
def test_of_concurrent_runs_those_that_fail_leave_the_key_to_another(
    acme: Organisation, ending: str
) -> None:
    source = f"{PUSHES.replace('return', 'local answer =')} {ending}"
    # Those that wait have more time than those that they wait for.
    pushers = [make_pusher(acme, *each) for each in [(source, 1.0), (PUSHES, 20.0)] * 4]
    runs = at_once(len(pushers), lambda number: run_in_turn(pushers[number]))

    (queued,) = pushed()
    replies = sorted(reply_of(run) for run in runs if run.status == RunStatus.SUCCEEDED)
    assert replies == [f'["{queued.pk}",false]'] * 3 + [f'["{queued.pk}",true]']


@pytest.mark.django_db(transaction=True)
def test_a_push_waits_until_the_run_that_has_reserved_its_key_is_committed(target: Script) -> None:
    first, second = Pusher(target), Pusher(target)
    run_id, is_new = first.push()

    def push() -> Pushed:
        try:
            return second.push()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as executor:
        answer = executor.submit(push)
        first.commit()

        assert is_new
        assert answer.result(60) == (run_id, False)
    assert Run.objects.filter(pk=run_id).exists()
    assert pushes_of(second.host) == []


def test_a_push_that_waits_is_new_once_the_other_run_has_failed(target: Script, waits: Any) -> None:
    first, second = Pusher(target), Pusher(target)
    first.push()
    waits(first.host.abandon)

    run_id, is_new = second.push()

    assert is_new
    second.commit()
    assert [run.pk for run in pushed()] == [run_id]


def test_a_push_waits_no_longer_than_its_run_may_take(target: Script) -> None:
    Pusher(target).push()
    late = Pusher(target)

    with pytest.raises(HostCallError, match="the run's time is over"):
        late.push(seconds=0.2)
    assert pushes_of(late.host) == []


def test_two_runs_that_want_each_others_keys_do_not_both_wait(target: Script, waits: Any) -> None:
    older, younger = Pusher(target), Pusher(target)
    older.push("a")
    younger.push("b")

    with pytest.raises(HostCallError, match="another run in progress pushes with this key"):
        younger.push("a")
    waits(younger.host.abandon)

    assert older.push("b").is_new
    older.commit()
    assert len(pushed()) == 2


# --- Reservations --------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["error('no')", "return Fail{}", "return Retry{}"])
def test_a_run_that_fails_frees_its_keys(acme: Organisation, ending: str) -> None:
    run_lua(acme, f"queue.push('target', '', {{key = 'k'}}) {ending}")
    assert not QueueKey.objects.exists()

    queue(hook_that(acme, f"queue.push('target', '', {{key = 'k'}}) {ending}"))
    (ended,) = work_queue()

    assert ended.status == RunStatus.FAILED
    assert not QueueKey.objects.exists()


def test_the_reservation_of_a_killed_run_ends_soon_after_its_time(target: Script) -> None:
    Pusher(target).push(seconds=10)
    ends_at = QueueKey.objects.get().expires_at
    assert timedelta(0) < ends_at - timezone.now() <= timedelta(seconds=25)

    QueueKey.objects.update(expires_at=timezone.now())
    assert Pusher(target).push().is_new

    QueueKey.objects.update(expires_at=timezone.now())
    assert forget_expired_queue_keys() == 1


def test_a_reservation_from_before_the_clock_was_set_back_is_over(target: Script) -> None:
    Pusher(target).push()
    QueueKey.objects.update(expires_at=timezone.now() + MAX_LEASE + timedelta(hours=1))

    assert Pusher(target).push().is_new


def test_a_run_that_outlasts_its_reservation_keeps_its_key_unless_another_takes_it(
    target: Script,
) -> None:
    first, second = Pusher(target), Pusher(target)
    run_id, _ = first.push()
    QueueKey.objects.all().delete()
    first.commit()

    assert second.push() == (run_id, False)


def test_a_key_that_is_queued_at_once_takes_precedence_over_a_reservation(
    acme: Organisation, target: Script
) -> None:
    pusher = Pusher(target)
    pusher.push()
    work = queue(hook_that(acme, "return 1"))

    assert claim_key(acme.pk, target.pk, "k", work.pk) == work.pk
    with pytest.raises(KeyTakenError):
        pusher.commit()
    pusher.host.abandon()

    assert pushed() == []
    assert QueueKey.objects.get().run_id == work.pk


# --- Runs that lose a key that they had reserved -------------------------------------------------


@pytest.fixture
def winner(acme: Organisation, target: Script, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run that is queued with the key ``k`` after another run has reserved it."""
    other = queue(hook_that(acme, "return 1"))
    push: Any = QueueCapability.push

    def push_and_lose(self: QueueCapability, *arguments: Any, **options: Any) -> Any:
        answer = push(self, *arguments, **options)
        if any(each.key == "k" for each in self.pushes):
            claim_key(acme.pk, target.pk, "k", other.pk)
        return answer

    monkeypatch.setattr(QueueCapability, "push", push_and_lose)
    return other


PUSHES_THREE = (
    "for key in ('az'):gmatch('.') do queue.push('target', '', {key = key}) end " + PUSHES
)


def test_a_call_whose_run_loses_its_key_fails_and_the_next_one_gets_the_truth(
    acme: Organisation, winner: Run
) -> None:
    path = path_of(make_hook(make_script(acme, PUSHES_THREE)))
    answer = Client().post(path, b"", content_type="text/plain")

    assert (answer.status_code, answer.json()["code"]) == (500, "script-failed")
    run = Run.objects.get(pk=answer["Moonhook-Run-Id"])
    assert (run.status, run.response_status) == (RunStatus.FAILED, 500)
    assert (bytes(run.response_body), run.response_headers) == (b"", [])
    assert run.response_bytes == 0
    recorded = measured(Run.objects.values().get(pk=run.pk))
    assert run.payload_bytes == recorded["payload_bytes"]
    assert "another run took a key" in run.error_message
    assert pushed() == []
    assert QueueEntry.objects.get().pk == winner.pk
    assert QueueKey.objects.get().run_id == winner.pk

    again = Client().post(path, b"", content_type="text/plain")

    assert (again.status_code, again.json()) == (200, [str(winner.pk), False])


def test_a_queued_run_that_loses_its_key_is_tried_again(acme: Organisation, winner: Run) -> None:
    QueueEntry.objects.all().delete()
    queue(hook_that(acme, PUSHES_THREE))
    claimed = claim_due_runs(4, Turns()).claimed
    finish([run_claimed(each) for each in claimed])

    failed = Run.objects.get(pk=claimed[0].run_id)
    assert (failed.status, failed.response_status) == (RunStatus.FAILED, 500)
    assert "another run took a key" in failed.error_message
    assert bytes(failed.response_body) == b""
    assert pushed() == []
    assert [key.run_id for key in QueueKey.objects.all()] == [winner.pk]

    make_due()
    (second,) = work_queue()

    assert (second.attempt, second.first_run_id) == (2, failed.pk)
    assert reply_of(second) == f'["{winner.pk}",false]'
    assert len(pushed()) == 2
