"""Queued runs are tried again, until they succeed or are dead letters."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation
from hooks.models import Hook
from jobs.models import QueueEntry
from jobs.queue.finish import backoff
from scripts_engine.models import Run, RunStatus, Script
from scripts_engine.sandbox import OutcomeKind, SandboxPool, ScriptError
from scripts_engine.secrets import set_secret
from tests.factories import event_with, hook_that, make_hook, make_script
from tests.working_queue import make_due, queue, work_all, work_queue

pytestmark = pytest.mark.django_db

FAILS_TWICE = """
if store.increment("calls") < 3 then error("not yet") end
return params.get("attempt") .. " " .. params.get("body")
"""


def test_until_it_starts_a_run_shows_when_and_how_it_was_accepted(hook: Hook) -> None:
    run = queue(hook)

    assert (run.status, run.response_status, run.duration_ms) == (RunStatus.QUEUED, 202, 0)
    assert (run.attempt, run.first_attempt_id, bytes(run.request_body)) == (1, run.pk, b"payload")
    assert timezone.now() - run.started_at < timedelta(seconds=10)
    assert run.queue_entry.attempt == 1


def test_a_run_that_succeeds_leaves_the_queue(acme: Organisation) -> None:
    run = queue(hook_that(acme, "return params.get('body')"))

    (ended,) = work_queue()

    assert ended.pk == run.pk
    assert (ended.status, ended.response_status) == (RunStatus.SUCCEEDED, 200)
    assert bytes(ended.response_body) == b"payload"
    assert ended.started_at > run.started_at
    assert not QueueEntry.objects.exists()


def test_a_failed_attempt_is_followed_by_another_with_the_same_payload(acme: Organisation) -> None:
    first = queue(hook_that(acme, FAILS_TWICE))

    one, two, three = work_all()

    assert [run.status for run in (one, two, three)] == ["failed", "failed", "succeeded"]
    assert [run.attempt for run in (one, two, three)] == [1, 2, 3]
    assert [run.first_attempt_id for run in (one, two, three)] == [first.pk] * 3
    assert bytes(three.response_body) == b"3 payload"
    # The payload is stored once.
    assert [bytes(run.request_body) for run in (one, two, three)] == [b"payload", b"", b""]
    assert [run.request_bytes for run in (one, two, three)] == [7, 7, 7]
    assert not Run.objects.dead_letters().exists()
    assert set(Run.objects.attempts_of(first.pk)) == {one, two, three}


def test_the_last_failed_attempt_is_a_dead_letter(acme: Organisation) -> None:
    queue(hook_that(acme, "error('always')"), max_attempts=3)

    ended = work_all()

    assert [run.attempt for run in ended] == [1, 2, 3]
    assert list(Run.objects.dead_letters()) == [ended[-1]]
    assert not QueueEntry.objects.exists()


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("return {", RunStatus.FAILED),
        ("local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) end", RunStatus.OUT_OF_MEMORY),
    ],
)
def test_what_no_attempt_can_mend_is_a_dead_letter_at_once(
    acme: Organisation, source: str, status: str
) -> None:
    script = make_script(acme)
    script.current_version.source = source  # type: ignore[union-attr]
    script.current_version.save()  # type: ignore[union-attr]
    queue(make_hook(script).hook)

    (ended,) = work_all()

    assert (ended.status, ended.is_dead_letter) == (status, True)


def test_a_run_that_timed_out_is_tried_again(acme: Organisation) -> None:
    hook = hook_that(acme, "while true do end")
    Script.objects.filter(pk=hook.script_id).update(timeout_seconds=0.1)
    queue(hook, max_attempts=2)

    assert [run.status for run in work_all()] == [RunStatus.TIMED_OUT] * 2


def test_a_run_whose_sandbox_is_killed_is_tried_again(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_in_sandbox, killed = SandboxPool.run, ScriptError("the process was ended from outside")

    def run_and_be_killed(pool: SandboxPool, *arguments: Any) -> Any:
        outcome = run_in_sandbox(pool, *arguments)
        return outcome._replace(kind=OutcomeKind.FAILED, reply=None, error=killed)

    queue(hook_that(acme, "return 'done'"))
    monkeypatch.setattr(SandboxPool, "run", run_and_be_killed)
    monkeypatch.setattr(SandboxPool, "check_syntax", lambda *arguments: killed)

    (ended,) = work_queue()

    assert (ended.status, ended.is_dead_letter) == (RunStatus.FAILED, None)
    assert QueueEntry.objects.get().attempt == 2


def test_an_attempt_runs_the_version_that_is_current_then(acme: Organisation) -> None:
    hook = hook_that(acme, "error('broken')")
    queue(hook)
    (failed,) = work_queue()
    version = failed.script_version
    assert version is not None
    version.pk, version.number, version.source = None, 2, "return 'mended'"
    version.save()
    Script.objects.filter(pk=hook.script_id).update(current_version=version)

    (mended,) = work_all()

    assert bytes(mended.response_body) == b"mended"
    assert mended.script_version_id == version.pk
    assert failed.script_version_id != version.pk


@pytest.mark.parametrize(("attempt", "full"), [(1, 10), (2, 40), (3, 160), (5, 2560), (6, 3600)])
def test_delays_grow_and_half_of_each_is_random(attempt: int, full: int) -> None:
    delays = {backoff(attempt) for _ in range(200)}

    assert full / 2 <= min(delays) < max(delays) <= full
    assert len(delays) > 100


def test_the_next_attempt_waits_out_its_delay(acme: Organisation) -> None:
    queue(hook_that(acme, "error('once')"))
    work_queue()

    assert work_queue() == []
    entry = QueueEntry.objects.get()
    assert timedelta(seconds=4) < entry.due_at - timezone.now() <= timedelta(seconds=10)


def test_headers_that_the_record_hides_reach_the_script(acme: Organisation) -> None:
    hook = hook_that(acme, "error(params.header('Authorization'))")
    event = event_with(headers=(("Authorization", "Bearer of-the-caller"), ("X-One", "1")))
    run = queue(hook, event=event, max_attempts=2)

    assert b"of-the-caller" not in bytes(run.queue_entry.hidden_ciphertext or b"")
    assert run.request_headers == [["Authorization", "[redacted]"], ["X-One", "1"]]
    for ended in work_all():
        assert "Bearer of-the-caller" in ended.error_message
        assert ["Authorization", "[redacted]"] in ended.request_headers


def test_secrets_that_an_attempt_read_reach_the_next_one_but_no_record(acme: Organisation) -> None:
    set_secret(acme, name="KEY", value="of-the-sender")
    source = """
        local key = secrets.get("KEY")
        if params.header("X-Key") ~= key or params.get("query") ~= "key=" .. key then
            return Fail{reason = "a stranger"}
        end
        error("down")
    """
    event = event_with(headers=(("X-Key", "of-the-sender"),), query="key=of-the-sender")
    queue(hook_that(acme, source), event=event, max_attempts=3)

    for number in (2, 3, None):
        make_due()
        (ended,) = work_queue()
        assert "down" in ended.error_message
        if number is not None:
            waiting = QueueEntry.objects.get(attempt=number)
            assert waiting.run.request_query == "key=[redacted]"
            assert waiting.run.request_headers == [["X-Key", "[redacted]"]]
            assert b"of-the-sender" not in bytes(waiting.hidden_ciphertext or b"")
