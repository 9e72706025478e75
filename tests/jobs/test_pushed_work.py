"""queue.push, from scripts: what it collects, and what it refuses."""

import time
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from accounts.models import Organisation
from jobs.models import QueueEntry, QueueKey
from jobs.models.queue import key_digest
from jobs.pushes import MAX_CHAIN_DEPTH, Push
from scripts_engine.flows.scripts import delete_script
from scripts_engine.host.capabilities import RecordedRun
from scripts_engine.host.handler import RunHost, UnrecordedHost
from scripts_engine.models import Run, RunStatus, Script, Trigger
from scripts_engine.sandbox import CallNote, HostCallError
from tests.factories import make_script, reply_of, run_lua
from tests.working_queue import pushes_of


@pytest.fixture
def ship(acme: Organisation) -> Script:
    return make_script(acme, name="ship")


def host_of(script: Script, chain_depth: int = 0) -> RunHost:
    """The host of a run of the script."""
    pushing = RecordedRun(uuid.uuid4(), script.pk, chain_depth)
    return RunHost(script.organisation_id, recorded=pushing)


def pushing_run(host: RunHost) -> uuid.UUID:
    assert host._recorded is not None
    return host._recorded.run_id


def push(
    host: RunHost | UnrecordedHost,
    script: Any,
    payload: Any = b"",
    delay: Any = None,
    key: Any = None,
    attempts: Any = None,
) -> tuple[uuid.UUID, bool]:
    arguments = [script, payload, delay, key, attempts]
    run_id, is_new = host("queue.push", arguments, deadline=time.monotonic() + 10, note=CallNote())
    return uuid.UUID(run_id.decode()), is_new


def refusal(host: RunHost | UnrecordedHost, *arguments: Any) -> str:
    with pytest.raises(HostCallError) as refused:
        push(host, *arguments)
    return str(refused.value)


def wait_in_queue(script: Script, runs: int) -> None:
    """Puts so many runs of the script into the queue."""
    now = timezone.now()
    for _ in range(runs):
        run = Run.objects.create(
            organisation=script.organisation, script=script, trigger=Trigger.QUEUE,
            status=RunStatus.QUEUED, started_at=now, queued_ms=0, duration_ms=0,
            request_body=b"", response_status=202, response_body=b"", attempt=1,
        )  # fmt: skip
        QueueEntry.objects.create(
            run=run, organisation=script.organisation, script=script, payload_of=run.pk,
            due_at=now, max_attempts=5,
        )  # fmt: skip


# --- What is collected ---------------------------------------------------------------------------


def test_a_push_is_collected_with_all_that_was_said(ship: Script) -> None:
    host = host_of(ship)
    run_id, is_new = push(host, b"ship", b"\0order", 1.5, "é".encode(), 3)

    assert is_new
    assert pushes_of(host) == [
        Push(
            run_id=run_id, script_id=ship.pk, version_id=ship.current_version_id,
            payload=b"\0order", delay_seconds=1.5, key="é", max_attempts=3,
        )
    ]  # fmt: skip
    assert QueueEntry.objects.count() == Run.objects.count() == 0
    # Reserved, so that the answer is still true when the run is committed.
    assert QueueKey.objects.values_list("run_id", "reserved_by").get() == (
        run_id,
        pushing_run(host),
    )


def test_a_push_leaves_the_rest_to_the_queue(ship: Script) -> None:
    host = host_of(ship)
    push(host, b"ship")

    assert [(each.delay_seconds, each.key, each.max_attempts) for each in pushes_of(host)] == [
        (0.0, "", None)
    ]


def test_a_run_without_pushes_has_none(ship: Script) -> None:
    assert pushes_of(host_of(ship)) == []


@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_script_is_found_by_its_id_or_name_enabled_or_not(ship: Script, is_enabled: bool) -> None:
    Script.objects.update(is_enabled=is_enabled)
    host = host_of(ship)
    push(host, b"ship")
    push(host, str(ship.pk).encode())

    assert [each.script_id for each in pushes_of(host)] == [ship.pk, ship.pk]


def test_the_id_is_looked_for_before_the_name(acme: Organisation, ship: Script) -> None:
    make_script(acme, name=str(ship.pk))
    named_like_an_id = make_script(acme, name=str(uuid.uuid4()))
    host = host_of(ship)
    push(host, str(ship.pk).encode())
    push(host, named_like_an_id.name.encode())

    assert [each.script_id for each in pushes_of(host)] == [ship.pk, named_like_an_id.pk]


def test_a_script_may_push_itself_and_gets_the_id_of_the_run(acme: Organisation) -> None:
    source = 'local id, is_new = queue.push(params.get("script_id"), {1}) return {#id, is_new}'

    assert reply_of(run_lua(acme, source)) == "[36,true]"


# --- Keys ----------------------------------------------------------------------------------------


def test_a_key_finds_the_first_push_of_the_run(ship: Script) -> None:
    host = host_of(ship)
    first, _ = push(host, b"ship", b"1", None, b"k")

    assert push(host, str(ship.pk).encode(), b"2", None, b"k") == (first, False)
    assert [each.payload for each in pushes_of(host)] == [b"1"]


def test_a_key_is_of_its_script(acme: Organisation, ship: Script) -> None:
    make_script(acme, name="bill")
    host = host_of(ship)
    first, _ = push(host, b"ship", b"", None, b"k")
    second, is_new = push(host, b"bill", b"", None, b"k")

    assert is_new
    assert first != second


def test_a_key_finds_the_run_that_was_queued_with_it(ship: Script) -> None:
    queued, soon = uuid.uuid4(), timezone.now() + timedelta(minutes=1)
    QueueKey.objects.create(
        digest=key_digest(ship.pk, "é"),
        organisation=ship.organisation,
        run_id=queued,
        expires_at=soon,
    )
    host = host_of(ship)

    assert push(host, b"ship", b"", None, "é".encode()) == (queued, False)
    assert pushes_of(host) == []
    QueueKey.objects.update(expires_at=timezone.now())
    assert push(host, b"ship", b"", None, "é".encode())[1] is True


def test_a_known_key_does_not_count_against_the_limits(ship: Script) -> None:
    host = host_of(ship)
    first, _ = push(host, b"ship", b"", None, b"k")
    for _ in range(19):
        push(host, b"ship")

    assert push(host, b"ship", b"", None, b"k") == (first, False)
    assert refusal(host, b"ship") == "queue.push: more than 20 pushes in a run"
    assert len(pushes_of(host)) == 20


# --- What is refused -----------------------------------------------------------------------------


def test_an_unknown_script_is_refused(
    ship: Script, globex: Organisation, acme: Organisation
) -> None:
    others = make_script(globex, name="theirs")
    deleted = make_script(acme, name="deleted")
    delete_script(deleted)
    host = host_of(ship)
    wrong = [
        b"", b"sail", b"SHIP", b"ship\0", b"\xff", b"x" * 100_000, b"theirs", b"deleted",
        str(others.pk).encode(), str(deleted.pk).encode(), str(uuid.uuid4()).encode(),
    ]  # fmt: skip

    assert {refusal(host, script) for script in wrong} == {
        "queue.push: there is no script with this id or name"
    }
    assert pushes_of(host) == []
    assert push(host, b"ship")[1] is True


def test_a_library_is_refused(acme: Organisation, ship: Script) -> None:
    library = make_script(acme, name="money")
    Script.objects.filter(pk=library.pk).update(is_library=True)
    host = host_of(ship)

    for script in (b"money", str(library.pk).encode()):
        assert refusal(host, script) == (
            "queue.push: this is a library, which does not run by itself"
        )
    assert pushes_of(host) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([None], "the script must be a string"),
        ([7], "the script must be a string"),
        ([b"ship", None], "the payload must be a string"),
        ([b"ship", {b"a": 1}], "the payload must be a string"),
        (
            [b"ship", b"x" * (256 * 1024 + 1)],
            "a payload may have 256 KiB; this one has 262,145 bytes",
        ),
        *(
            ([b"ship", b"", delay], "delay must be from 0 to 2,592,000 seconds (30 days)")
            for delay in (-1, -0.1, 2_592_000.1, 2**63, float("nan"), float("inf"), True, b"1", [])
        ),
        *(
            ([b"ship", b"", 0, key], "key must be text in UTF-8 of 1 to 200 characters")
            for key in (b"", b"k" * 201, b"\xff", "é".encode() * 201, b"k" * 801, 7, True, {})
        ),
        *(
            ([b"ship", b"", 0, b"k", attempts], "attempts must be a whole number from 1 to 20")
            for attempts in (0, 21, -1, 1.5, float("nan"), float("inf"), True, b"1", [])
        ),
    ],
)
def test_an_argument_beyond_its_limit_is_refused(
    ship: Script, arguments: list[Any], problem: str
) -> None:
    host = host_of(ship)

    assert refusal(host, *arguments) == f"queue.push: {problem}"
    assert pushes_of(host) == []


def test_an_argument_at_its_limit_is_taken(ship: Script) -> None:
    host = host_of(ship)
    push(host, b"ship", b"x" * 256 * 1024, 2_592_000, b"k" * 200, 20.0)
    push(host, b"ship", b"", 0, b"k", 1)

    assert [each.max_attempts for each in pushes_of(host)] == [20, 1]


def test_a_run_at_the_end_of_a_chain_pushes_nothing(ship: Script) -> None:
    last = host_of(ship, MAX_CHAIN_DEPTH)

    assert refusal(last, b"ship") == "queue.push: more than 20 runs that pushed one another"
    assert pushes_of(last) == []
    assert push(host_of(ship, MAX_CHAIN_DEPTH - 1), b"ship")[1] is True


@override_settings(QUEUE_MAX_WAITING=3)
def test_a_full_queue_takes_nothing(ship: Script, globex: Organisation) -> None:
    wait_in_queue(make_script(globex), runs=3)
    wait_in_queue(ship, runs=1)
    host = host_of(ship)
    push(host, b"ship")
    push(host, b"ship")

    assert refusal(host, b"ship") == (
        "queue.push: the queue is full: 3 runs of the organisation wait"
    )
    assert len(pushes_of(host)) == 2


@override_settings(RUN_BYTES_PER_ORGANISATION=10_000)
def test_a_queue_that_holds_the_quota_of_bytes_takes_nothing(ship: Script) -> None:
    wait_in_queue(ship, runs=1)
    Run.objects.update(payload_bytes=10_000)
    host = host_of(ship)

    for _ in range(2):
        assert refusal(host, b"ship") == (
            "queue.push: the queue is full: what waits uses up the quota of bytes"
        )
    assert pushes_of(host) == []


@override_settings(QUEUE_MAX_WAITING=1)
def test_runs_that_a_runner_has_taken_do_not_fill_the_queue(ship: Script) -> None:
    wait_in_queue(ship, runs=1)
    QueueEntry.objects.update(lease_id=uuid.uuid4(), lease_ends_at=timezone.now())

    assert push(host_of(ship), b"ship")[1] is True


def test_a_refusal_can_be_caught_as_a_string(acme: Organisation, ship: Script) -> None:
    run = run_lua(acme, 'local _, problem = pcall(queue.push, "sail", "") return problem')

    assert reply_of(run) == "queue.push: there is no script with this id or name"


def test_a_run_that_is_not_recorded_pushes_nothing(acme: Organisation, ship: Script) -> None:
    assert refusal(UnrecordedHost(acme.pk), b"ship") == (
        "queue.push: save the script first; it works in recorded runs"
    )
    assert refusal(RunHost(acme.pk), b"ship") == "queue.push: not available here"
