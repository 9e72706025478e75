"""What the queue has to do, as a plain model in memory. It predicts all but random delays."""

import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from jobs.models.queue import MAX_LEASE
from jobs.queue.deduplication import KEY_WINDOW
from jobs.queue.finish import DELAYS_SECONDS
from scripts_engine.models import RunStatus


class Outcome(NamedTuple):
    """How an attempt ends."""

    status: RunStatus
    is_final: bool = False
    retry_after_seconds: float | None = None


SUCCESS = Outcome(RunStatus.SUCCEEDED)


@dataclass
class Attempt:
    run_id: uuid.UUID
    first_id: uuid.UUID
    organisation_id: uuid.UUID
    script_id: uuid.UUID
    max_attempts: int
    due_at: datetime
    number: int = 1
    status: RunStatus = RunStatus.QUEUED
    lease_id: uuid.UUID | None = None
    lease_ends_at: datetime | None = None
    is_dead_letter: bool | None = None

    @property
    def order(self) -> tuple[datetime, uuid.UUID]:
        return self.due_at, self.run_id


class Following(NamedTuple):
    """The attempt that has to follow another: its number, and the limits of its delay."""

    attempt: Attempt
    number: int
    least_seconds: float
    most_seconds: float


@dataclass
class QueueModel:
    lease_seconds: float
    attempts: dict[uuid.UUID, Attempt] = field(default_factory=dict)
    keys: dict[tuple[uuid.UUID, str], tuple[uuid.UUID, datetime]] = field(default_factory=dict)
    stopped: set[uuid.UUID] = field(default_factory=set)
    """Paused organisations, and scripts that are paused or disabled."""
    deleted: dict[uuid.UUID, datetime] = field(default_factory=dict)
    """Scripts, and when they were deleted."""

    def in_state(self, status: RunStatus) -> list[Attempt]:
        found = [each for each in self.attempts.values() if each.status is status]
        return sorted(found, key=lambda each: each.order)

    @property
    def waiting(self) -> list[Attempt]:
        return self.in_state(RunStatus.QUEUED)

    @property
    def leased(self) -> list[Attempt]:
        return self.in_state(RunStatus.RUNNING)

    def claimable(self, now: datetime) -> list[Attempt]:
        stopped = self.stopped | self.deleted.keys()
        return [
            each
            for each in self.waiting
            if each.due_at <= now and not {each.organisation_id, each.script_id} & stopped
        ]

    def leases(self) -> Counter[uuid.UUID]:
        return Counter(each.organisation_id for each in self.leased)

    def has_key(self, script_id: uuid.UUID, key: str, now: datetime) -> bool:
        return (script_id, key) in self.keys and self.keys[script_id, key][1] > now

    def add(self, attempt: Attempt, key: str, now: datetime) -> bool:
        """Whether it is new: no other run has its key."""
        if self.has_key(attempt.script_id, key, now):
            return False
        if key:
            self.keys[attempt.script_id, key] = attempt.run_id, now + KEY_WINDOW
        self.attempts[attempt.run_id] = attempt
        return True

    def claim(self, run_id: uuid.UUID, lease_id: uuid.UUID, now: datetime) -> None:
        attempt = self.attempts[run_id]
        attempt.status = RunStatus.RUNNING
        attempt.lease_id = lease_id
        attempt.lease_ends_at = now + timedelta(seconds=self.lease_seconds)

    def holder(self, run_id: uuid.UUID, lease_id: uuid.UUID) -> Attempt | None:
        """The attempt if that lease still has it."""
        attempt = self.attempts[run_id]
        return attempt if attempt.lease_id == lease_id else None

    def give_back(self, attempt: Attempt, due_at: datetime) -> None:
        attempt.status, attempt.lease_id, attempt.lease_ends_at = RunStatus.QUEUED, None, None
        attempt.due_at = due_at

    def end(self, attempt: Attempt, outcome: Outcome) -> Following | None:
        attempt.status, attempt.lease_id, attempt.lease_ends_at = outcome.status, None, None
        if outcome.status is RunStatus.SUCCEEDED:
            return None
        if outcome.is_final or attempt.number >= attempt.max_attempts:
            attempt.is_dead_letter = True
            return None
        if outcome.retry_after_seconds is not None:
            least = most = outcome.retry_after_seconds
        else:
            most = DELAYS_SECONDS[min(attempt.number, len(DELAYS_SECONDS)) - 1]
            least = most / 2
        return Following(attempt, attempt.number + 1, least, most)

    def follow(self, following: Following, run_id: uuid.UUID, due_at: datetime) -> None:
        self.attempts[run_id] = replace(
            following.attempt,
            run_id=run_id,
            number=following.number,
            due_at=due_at,
            status=RunStatus.QUEUED,
        )

    def lose(self, now: datetime) -> list[Following]:
        """Ends what has no valid lease; a lease from a later time is not valid either."""
        over = [
            each
            for each in self.leased
            if each.lease_ends_at and not now < each.lease_ends_at <= now + MAX_LEASE
        ]
        ends = [
            self.end(each, Outcome(RunStatus.LOST, is_final=each.script_id in self.deleted))
            for each in over
        ]
        return [each for each in ends if each is not None]

    def cancel_waiting_of(self, script_ids: set[uuid.UUID]) -> int:
        waiting = [each for each in self.waiting if each.script_id in script_ids]
        for each in waiting:
            each.status = RunStatus.CANCELLED
        return len(waiting)

    def calls(self) -> dict[uuid.UUID, list[Attempt]]:
        """The attempts at each call, in their order."""
        found: dict[uuid.UUID, list[Attempt]] = {}
        for each in sorted(self.attempts.values(), key=lambda each: each.number):
            found.setdefault(each.first_id, []).append(each)
        return found
