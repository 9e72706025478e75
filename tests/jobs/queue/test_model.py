"""Whatever happens, in whatever order: the queue does what its model does."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from uuid_utils.compat import uuid7

from jobs.models import QueueEntry
from jobs.models.queue import MAX_LEASE
from jobs.queue.cancel import NotQueuedError, cancel_orphans, cancel_run
from jobs.queue.enqueue import enqueue
from jobs.queue.finish import end_lost_runs, give_back
from jobs.queue.pause import pause_organisation, pause_script, resume_organisation, resume_script
from jobs.queue.replay import NotReplayableError, replay_runs
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Run, RunStatus, Script
from scripts_engine.runs.spec import NOBODY
from tests.factories import make_organisation, make_script
from tests.jobs.queue.both_queues import BothQueues
from tests.jobs.queue.queue_model import SUCCESS, Outcome

DAY = timedelta(days=1)
OUTCOMES = st.sampled_from(
    [
        SUCCESS,
        Outcome(RunStatus.FAILED),
        Outcome(RunStatus.TIMED_OUT),
        Outcome(RunStatus.OUT_OF_MEMORY, is_final=True),
        Outcome(RunStatus.FAILED, is_final=True),
        Outcome(RunStatus.FAILED, retry_after_seconds=0),
        Outcome(RunStatus.FAILED, retry_after_seconds=90),
    ]
)
PLACES = st.integers(0, 99)
KEYS = st.sampled_from(["", "a"])
PUSHES = st.lists(st.tuples(PLACES, KEYS), max_size=2)
# The script's place, the delay, the key and the number of attempts.
CALLS = st.tuples(PLACES, st.sampled_from([0, 0, 30]), KEYS, st.integers(1, 3))


class QueueMachine(BothQueues, RuleBasedStateMachine):
    """What may happen to the queue."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        RuleBasedStateMachine.__init__(self)
        BothQueues.__init__(self, scripts)

    def teardown(self) -> None:
        self.close()

    @invariant()
    def holds(self) -> None:
        self.check_that_the_database_is_as_the_model()
        self.check_that_every_call_is_queued_once_or_has_ended()

    @initialize(calls=st.lists(CALLS, min_size=4, max_size=12), number=st.integers(2, 6))
    def it_is_in_use(self, calls: list[tuple[int, int, str, int]], number: int) -> None:
        self.calls_arrive(calls)
        self.claim_runs(0, number)
        self.claim_runs(1, 1)

    @rule(calls=st.lists(CALLS, min_size=1, max_size=4))
    def calls_arrive(self, calls: list[tuple[int, int, str, int]]) -> None:
        for place, delay, key, max_attempts in calls:
            script = self.script(place)
            work = self.work(script, delay, max_attempts)
            asked = uuid7()
            run_id = enqueue(work, run_id=asked, key=key)
            is_new = run_id == asked

            assert is_new == self.add(script, run_id, work, key)
            assert is_new or run_id == self.model.keys[script.pk, key][0]

    @rule(seconds=st.sampled_from([0.001, 15, 45]))
    def time_passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def the_clock_is_set_back(self) -> None:
        self.now -= timedelta(seconds=130)
        self.lost_runs_end()

    @rule(node=st.integers(0, 1), number=st.integers(1, 6))
    def claim(self, node: int, number: int) -> None:
        self.claim_runs(node, number)

    @rule(
        node=st.integers(0, 1),
        seconds=st.sampled_from([0, 45]),
        outcomes=st.lists(OUTCOMES, min_size=1, max_size=6),
        pushes=PUSHES,
    )
    def a_round(
        self, node: int, seconds: float, outcomes: list[Outcome], pushes: list[tuple[int, str]]
    ) -> None:
        self.time_passes(seconds)
        claims = self.claim_runs(node, len(outcomes))
        if claims:
            self.end_attempts(list(zip(claims, outcomes, strict=False)), pushes)

    @precondition(lambda self: self.claims)
    @rule(
        ends=st.lists(st.tuples(PLACES, OUTCOMES), min_size=1, max_size=3),
        pushes=PUSHES,
    )
    def attempts_end(self, ends: list[tuple[int, Outcome]], pushes: list[tuple[int, str]]) -> None:
        """Some, perhaps, whose lease was lost or whose result was committed before."""
        newest_first = self.claims[::-1]
        chosen = {place % len(newest_first): outcome for place, outcome in ends}
        self.end_attempts(
            [(newest_first[place], outcome) for place, outcome in chosen.items()], pushes
        )

    @precondition(lambda self: self.claims)
    @rule(place=PLACES, delay=st.sampled_from([0, 1]))
    def a_run_does_not_start(self, place: int, delay: int) -> None:
        claimed = self.claims[-1 - place % len(self.claims)]
        give_back([claimed], delay_seconds=delay)

        attempt = self.model.holder(claimed.run_id, claimed.lease_id)
        if attempt is not None:
            due_at = self.now + timedelta(seconds=delay) if delay else attempt.due_at
            self.model.give_back(attempt, due_at)

    @rule()
    def lost_runs_end(self) -> None:
        number = end_lost_runs()
        before = len(self.model.leased)
        followings = self.model.lose(self.now)

        assert number == before - len(self.model.leased)
        self.check_followings(followings)

    @rule()
    def orphans_are_cancelled(self) -> None:
        number = cancel_orphans()

        assert number == self.model.cancel_waiting_of(set(self.model.deleted))

    @precondition(lambda self: self.model.attempts)
    @rule(place=PLACES)
    def cancel(self, place: int) -> None:
        attempt = self.attempt(place)
        run = Run.objects.get(pk=attempt.run_id)
        if attempt.status is RunStatus.QUEUED:
            cancel_run(run)
            attempt.status = RunStatus.CANCELLED
        else:
            with pytest.raises(NotQueuedError):
                cancel_run(run)

    @precondition(lambda self: self.model.attempts)
    @rule(places=st.lists(PLACES, min_size=1, max_size=3))
    def replay(self, places: list[int]) -> None:
        dead = [each for each in self.model.attempts.values() if each.is_dead_letter]
        among = dead or list(self.model.attempts.values())
        chosen = [among[place] for place in {place % len(among) for place in places}]
        runs = [Run.objects.get(pk=each.run_id) for each in chosen]
        if any(not run.has_ended or run.script_id in self.model.deleted for run in runs):
            with pytest.raises(NotReplayableError):
                replay_runs(runs, author=NOBODY)
            return
        replays = replay_runs(runs, author=NOBODY)
        for run_id, attempt in zip(replays, chosen, strict=True):
            attempt.is_dead_letter = attempt.is_dead_letter and False
            script = next(each for each in self.scripts if each.pk == attempt.script_id)
            self.add(script, run_id, self.work(script))

    @precondition(lambda self: not self.model.stopped)
    @rule(place=PLACES, switch=st.sampled_from(["script", "organisation", "is_enabled"]))
    def stop(self, place: int, switch: str) -> None:
        script = self.script(place)
        if switch == "organisation":
            pause_organisation(script.organisation)
            self.model.stopped.add(script.organisation_id)
            return
        if switch == "script":
            pause_script(script)
        else:
            Script.objects.filter(pk=script.pk).update(is_enabled=False)
        self.model.stopped.add(script.pk)

    @precondition(lambda self: self.model.stopped)
    @rule()
    def resume(self) -> None:
        for script in self.scripts:
            resume_script(script)
            resume_organisation(script.organisation)
        Script.objects.update(is_enabled=True)
        self.model.stopped.clear()

    @precondition(lambda self: len(self.model.deleted) < 2)
    @rule(place=PLACES)
    def delete_a_script(self, place: int) -> None:
        script = self.script(place)
        delete_script(script)
        if script.pk not in self.model.deleted:
            self.model.deleted[script.pk] = self.now
            self.model.cancel_waiting_of({script.pk})

    @rule()
    def a_day_passes(self) -> None:
        """While runners look after what was lost."""
        self.orphans_are_cancelled()
        self.now += DAY
        self.lost_runs_end()
        self.orphans_are_cancelled()

    @rule()
    def all_work_is_done(self) -> None:
        self.resume()
        # Leases may be from before the clock was set back.
        self.time_passes(MAX_LEASE.total_seconds())
        self.lost_runs_end()
        self.orphans_are_cancelled()
        while self.model.waiting:
            self.now = max(self.now, self.model.waiting[-1].due_at)
            self.claim_runs(0, 50)
            assert self.model.leased
            self.end_attempts(
                [
                    (each, SUCCESS)
                    for each in self.claims
                    if self.model.holder(each.run_id, each.lease_id)
                ]
            )

        assert not QueueEntry.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("examples", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_the_queue_does_what_its_model_does(examples: int) -> None:
    organisations = [make_organisation(name) for name in ("Acme", "Globex")]
    scripts = [make_script(each, name=name) for each in organisations for name in ("one", "two")]

    run_state_machine_as_test(
        lambda: QueueMachine(scripts),
        settings=settings(max_examples=examples, stateful_step_count=30),
    )
