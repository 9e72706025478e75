"""What a script pushes is queued with its run, or not at all."""

import threading
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone

from accounts.models import Organisation
from core.waiting import DatabaseThreads, GreenLoop
from jobs import pushes
from jobs.models import QueueEntry, QueueKey
from jobs.queue import enqueue
from jobs.queue.cancel import cancel_orphans
from jobs.queue.deduplication import claim_key
from jobs.queue.enqueue import take_keys
from jobs.queue.replay import NotReplayableError, replay_runs
from scripts_engine.models import Run, RunStatus, Script, Trigger
from scripts_engine.runs.spec import NOBODY
from scripts_engine.secrets import set_secret
from tests.factories import hook_that, make_script, reply_of, run_lua
from tests.working_queue import make_due, queue, work_all, work_queue

pytestmark = pytest.mark.django_db

SHOWS = """return {params.get("body"), params.get("trigger"), params.get("attempt")}"""


@pytest.fixture(autouse=True)
def target(acme: Organisation) -> Script:
    return make_script(acme, SHOWS, "target")


def pushed() -> list[Run]:
    return list(Run.objects.filter(trigger=Trigger.QUEUE).order_by("pk"))


def test_a_push_is_queued_with_its_run(acme: Organisation, target: Script) -> None:
    run = run_lua(acme, "local id, is_new = queue.push('target', {n = 1}) return {id, is_new}")

    (queued,) = pushed()
    assert reply_of(run) == f'["{queued.pk}",true]'
    assert (queued.status, queued.script_id, bytes(queued.request_body)) == (
        RunStatus.QUEUED,
        target.pk,
        b'{"n":1}',
    )
    assert (queued.pushed_by_id, queued.chain_depth, queued.hook_id) == (run.pk, 1, None)
    (ended,) = work_queue()
    assert reply_of(ended) == '["{\\"n\\":1}","queue","1"]'


@pytest.mark.parametrize("ending", ["error('no')", "return Fail{}", "return Retry{}"])
def test_a_run_that_fails_pushes_nothing(acme: Organisation, ending: str) -> None:
    run = run_lua(acme, f"queue.push('target', '') {ending}")

    assert run.status == RunStatus.FAILED
    assert pushed() == []
    assert not QueueEntry.objects.exists()


def test_a_queued_run_pushes_once_it_succeeds(acme: Organisation) -> None:
    source = """
    queue.push('target', params.get('attempt'))
    if store.increment('calls') < 2 then error('not yet') end
    """
    queue(hook_that(acme, source))
    work_queue()
    assert pushed() == []

    make_due()
    (second,) = work_queue()

    (queued,) = pushed()
    assert (bytes(queued.request_body), queued.pushed_by_id) == (b"2", second.pk)


def test_a_key_finds_the_run_that_was_pushed_with_it(acme: Organisation) -> None:
    source = "local id, is_new = queue.push('target', '', {key = 'order 1'}) return {id, is_new}"
    first = reply_of(run_lua(acme, source))
    again = reply_of(run_lua(acme, source))

    (queued,) = pushed()
    assert first == f'["{queued.pk}",true]'
    assert again == f'["{queued.pk}",false]'


def test_keys_are_taken_in_one_order(acme: Organisation, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def note_and_claim(organisation_id: Any, script_id: Any, key: str, run_id: Any) -> Any:
        taken.append(key)
        return claim_key(organisation_id, script_id, key, run_id)

    monkeypatch.setattr(enqueue, "claim_key", note_and_claim)
    source = "for key in ('%s'):gmatch('%%a') do queue.push('target', '', {key = key}) end"
    run_lua(acme, source % "abcdef")
    QueueKey.objects.all().delete()
    run_lua(acme, source % "fedcba")

    assert sorted(taken[:6]) == list("abcdef")
    assert taken[:6] == taken[6:]


def test_delay_and_attempts_are_those_of_the_push(acme: Organisation) -> None:
    make_script(acme, "error('never')", "fails")
    run_lua(acme, "queue.push('fails', '', {delay = 60, attempts = 2})")
    assert work_queue() == []

    assert [run.attempt for run in work_all()] == [1, 2]
    assert Run.objects.dead_letters().count() == 1


def test_a_chain_ends_at_its_depth(acme: Organisation) -> None:
    make_script(acme, "queue.push('chain', '')", "chain")
    run_lua(acme, "queue.push('chain', '')")

    ended = work_all(rounds=30)

    assert [run.chain_depth for run in ended] == list(range(1, 21)) + [20] * 4
    assert "20 runs that pushed one another" in ended[-1].error_message
    assert ended[-1].is_dead_letter


def test_the_record_of_a_payload_hides_what_the_script_got_of_a_secret(acme: Organisation) -> None:
    set_secret(acme, name="KEY", value="very-secret-value")
    run_lua(acme, "queue.push('target', 'use ' .. secrets.get('KEY'))")

    (queued,) = pushed()
    assert b"very-secret-value" not in bytes(queued.request_body)
    assert b"very-secret-value" not in bytes(queued.queue_entry.hidden_ciphertext or b"")
    (ended,) = work_queue()
    assert reply_of(ended).startswith('["use very-secret-value"')
    # What nobody has any more cannot be sent again.
    with pytest.raises(NotReplayableError, match="hides a secret"):
        replay_runs([ended], author=NOBODY)
    assert not QueueEntry.objects.exists()


def test_a_push_that_meets_the_deletion_of_its_script_is_cancelled(
    acme: Organisation, target: Script
) -> None:
    run_lua(acme, "queue.push('target', '')")
    # Without what deletes it, as if that had come first.
    Script.objects.filter(pk=target.pk).update(deleted_at=timezone.now())
    assert work_queue() == []

    assert cancel_orphans() == 1

    assert [run.status for run in pushed()] == [RunStatus.CANCELLED]
    assert not QueueEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("size", "is_aside"), [(10, False), (200_000, True)])
def test_a_large_push_does_not_hold_up_green_threads(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch, size: int, is_aside: bool
) -> None:
    threads: list[int] = []

    def watched(rows: Any) -> None:
        threads.append(threading.get_ident())
        take_keys(rows)

    monkeypatch.setattr(pushes, "take_keys", watched)
    monkeypatch.setattr(connections, "_connections", connections._connections)
    source = f"for i = 1, 2 do queue.push('target', ('x'):rep({size})) end"
    with DatabaseThreads(2) as executor:
        GreenLoop(most=2, executor=executor).run(lambda: run_lua(acme, source))

    assert [each != threading.get_ident() for each in threads] == [is_aside]
    assert [len(bytes(run.request_body)) for run in pushed()] == [size, size]
