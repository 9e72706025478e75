"""The queue and its model, which take the same steps."""

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from uuid_utils.compat import uuid7

from jobs.models import QueueEntry
from jobs.queue.claim import LEASE_MARGIN, Claimed, Turns, claim_due_runs
from jobs.queue.enqueue import QueuedRows, QueuedWork, queued_rows
from jobs.queue.finish import EndedRun, finish
from scripts_engine.models import Run, RunStatus, Script, Trigger
from tests.factories import event_with
from tests.jobs.queue.queue_model import Attempt, Following, Outcome, QueueModel

HOUR = timedelta(hours=1)


class BothQueues:
    """Two nodes work the queue of two organisations. Nothing is committed, and time stands still.

    Each method does the same to the queue and to the model, and compares what came of it.
    """

    def __init__(self, scripts: Sequence[Script]) -> None:
        self.scripts = scripts
        self.model = QueueModel(scripts[0].timeout_seconds + LEASE_MARGIN.total_seconds())
        self.now = timezone.now()
        self.turns = [Turns(), Turns()]
        self.served = [Counter[uuid.UUID](), Counter[uuid.UUID]()]
        # All that was ever claimed, whoever has the run now.
        self.claims: list[Claimed] = []
        self._open = ExitStack()
        self._open.enter_context(transaction.atomic())
        self._open.callback(transaction.set_rollback, True)
        patch = self._open.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(timezone, "now", lambda: self.now)

    def close(self) -> None:
        self._open.close()

    def claim_runs(self, node: int, number: int) -> list[Claimed]:
        wanted = min(number, len(self.model.claimable(self.now)))
        found = claim_due_runs(number, self.turns[node])

        assert len(found.claimed) == wanted
        for each in found.claimed:
            self.check_claim(each, self.served[node])
            self.model.claim(each.run_id, each.lease_id, self.now)
        self.claims += found.claimed
        return found.claimed

    def check_claim(self, claimed: Claimed, served: Counter[uuid.UUID]) -> None:
        """Whether its organisation's turn has come, and its own within the organisation."""
        claimable, leases = self.model.claimable(self.now), self.model.leases()
        chosen = claimed.entry.organisation_id
        ranks = {
            each.organisation_id: (leases[each.organisation_id], served[each.organisation_id])
            for each in claimable
        }
        assert ranks[chosen] == min(ranks.values())
        first = next(each for each in claimable if each.organisation_id == chosen)
        assert claimed.run_id == first.run_id
        served[chosen] = max(served.values(), default=0) + 1

    def end_attempts(
        self, ends: Sequence[tuple[Claimed, Outcome]], pushes: Sequence[tuple[int, str]] = ()
    ) -> None:
        # A run pushes a key once.
        keyed = {(self.script(place), key or place): key for place, key in pushes}
        pushed = [(script, uuid7(), key) for (script, _), key in keyed.items()]
        rows = [
            queued_rows(self.work(script), run_id)._replace(key=key)
            for script, run_id, key in pushed
        ]
        finish(
            [
                ended(claimed, outcome, rows if not place else ())
                for place, (claimed, outcome) in enumerate(ends)
            ]
        )

        followings = []
        for place, (claimed, outcome) in enumerate(ends):
            attempt = self.model.holder(claimed.run_id, claimed.lease_id)
            if attempt is None:
                continue
            is_pushing = place == 0 and outcome.status is RunStatus.SUCCEEDED
            if is_pushing and any(
                self.model.has_key(script.pk, key, self.now) for script, _, key in pushed
            ):
                followings.append(
                    self.model.end(attempt, Outcome(RunStatus.FAILED, outcome.is_final))
                )
                continue
            followings.append(self.model.end(attempt, outcome))
            if is_pushing:
                for script, run_id, key in pushed:
                    assert self.add(script, run_id, self.work(script), key)
        self.check_followings(followings)

    def check_followings(self, followings: Iterable[Following | None]) -> None:
        for each in followings:
            if each is None:
                continue
            entry = QueueEntry.objects.get(payload_of=each.attempt.first_id, attempt=each.number)
            delay = (entry.due_at - self.now).total_seconds()
            assert each.least_seconds <= delay <= each.most_seconds
            self.model.follow(each, entry.pk, entry.due_at)

    def check_that_the_database_is_as_the_model(self) -> None:
        runs = Run.objects.values_list("pk", "first_run", "status", "attempt", "is_dead_letter")
        assert set(runs) == {
            (
                each.run_id,
                None if each.number == 1 else each.first_id,
                each.status,
                each.number,
                each.is_dead_letter,
            )
            for each in self.model.attempts.values()
        }
        columns = (
            "pk",
            "payload_of",
            "due_at",
            "attempt",
            "max_attempts",
            "lease_id",
            "lease_ends_at",
        )
        assert set(QueueEntry.objects.values_list(*columns)) == {
            (
                each.run_id,
                each.first_id,
                each.due_at,
                each.number,
                each.max_attempts,
                each.lease_id,
                each.lease_ends_at,
            )
            for each in self.model.waiting + self.model.leased
        }

    def check_that_every_call_is_queued_once_or_has_ended(self) -> None:
        for *earlier, last in self.model.calls().values():
            assert last.number == len(earlier) + 1 <= last.max_attempts
            assert all(each.status in {"failed", "timed-out", "lost"} for each in earlier)
            assert [each.is_dead_letter for each in earlier] == [None] * len(earlier)
            is_settled = last.status in {"queued", "running", "succeeded", "cancelled"}
            assert is_settled == (last.is_dead_letter is None)

    def script(self, place: int) -> Script:
        """One that exists, or that was there when a call or a push was on its way."""
        known = [
            each
            for each in self.scripts
            if self.now - self.model.deleted.get(each.pk, self.now) < HOUR
        ]
        return known[place % len(known)]

    def attempt(self, place: int) -> Attempt:
        newest_first = sorted(self.model.attempts, reverse=True)
        return self.model.attempts[newest_first[place % len(newest_first)]]

    def work(self, script: Script, delay: float = 0, max_attempts: int | None = None) -> QueuedWork:
        return QueuedWork(
            organisation_id=script.organisation_id,
            script_id=script.pk,
            version_id=script.current_version_id,
            event=event_with(body=b"payload"),
            trigger=Trigger.QUEUE,
            delay_seconds=delay,
            max_attempts=max_attempts,
        )

    def add(self, script: Script, run_id: uuid.UUID, work: QueuedWork, key: str = "") -> bool:
        attempt = Attempt(
            run_id,
            first_id=run_id,
            organisation_id=script.organisation_id,
            script_id=script.pk,
            max_attempts=work.max_attempts or settings.QUEUE_MAX_ATTEMPTS,
            due_at=self.now + timedelta(seconds=work.delay_seconds),
        )
        return self.model.add(attempt, key, self.now)


def ended(claimed: Claimed, outcome: Outcome, pushed: Sequence[QueuedRows]) -> EndedRun:
    columns = {
        "error_message": "",
        "status": outcome.status.value,
        "response_status": 200,
        "response_headers": [],
        "response_body": b"",
        "response_bytes": 0,
        "payload_bytes": 7,
    }
    return EndedRun(
        claimed,
        claimed.entry.run,
        columns,
        pushed=pushed,
        is_final=outcome.is_final,
        retry_after_seconds=outcome.retry_after_seconds,
    )
