"""A runner: works the queue of this node until it is told to stop.

All of it happens in green threads of one thread. One does the bookkeeping: it commits the results
of the runs that have ended meanwhile, and claims as many as there are free slots. Each run has one
that waits for its sandbox process. Another does what is due from time to time, in other threads.

While runs are shorter than the bookkeeping, it claims as many again, so that no slot waits for it.
"""

import logging
import math
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from core.database.unavailable import DatabaseUnavailable
from core.waiting import (
    Bell,
    DatabaseThreads,
    GreenLoop,
    give_way,
    in_thread,
    return_pooled_connection,
    sleep,
)
from jobs.concurrent_runs import give_back_lease
from jobs.metrics import QUEUE_SLOTS_IN_USE
from jobs.queue.cancel import cancel_orphans
from jobs.queue.claim import Claimed, Round, Turns, claim_due_runs, move_to_present
from jobs.queue.finish import (
    EndedRun,
    end_as_lost,
    end_lost_runs,
    finish,
    give_back,
)
from jobs.queue.run_claimed import run_claimed
from jobs.queue.wake_up import RUNS, ChangeCounter, Listener
from scripts_engine.sandbox import SandboxBusy, SandboxUnavailable

logger = logging.getLogger(__name__)

# How often a runner looks for work without being told.
LOOK_SECONDS = 1.0
# On SQLite nothing tells it; this look is cheap.
CHANGE_SECONDS = 0.03
LOST_CHECK_SECONDS = 5.0
# Between two looks of which the first found too little for the free slots: calls that follow each
# other are claimed together, and hold up those who write to the database less often.
PAUSE_SECONDS = 0.01
# Runs are claimed ahead of free slots while they take less time than this, by a moving average.
SHORT_RUN_SECONDS = 0.01
# So many for each slot: a round of commits and claims takes longer than the runs that are ready
# when it begins, and costs little more for many than for one.
AHEAD_PER_SLOT = 7
# What is claimed ahead and has no slot by then goes back, for other runners.
AHEAD_SECONDS = 0.1
# Before a run is tried again that could not start.
NOT_STARTED_SECONDS = 1.0
OUTAGE_SECONDS = 1.0

# Jobs that a runner does beside its runs, each with the seconds from one time to the next.
Duty = tuple[Callable[[], object], float]


class _NotEnded(NamedTuple):
    """A run without a result, which may have had effects or did not start."""

    claimed: Claimed
    may_have_run: bool


class _Ahead(NamedTuple):
    """A run that was claimed before there was a slot for it."""

    claimed: Claimed
    ends_at: float
    """When it goes back, of ``time.monotonic``."""


# What a run leaves to the bookkeeper.
_Message = EndedRun | _NotEnded


class Runner:
    """Works the queue with that many slots. ``run`` returns after ``stop``."""

    def __init__(self, slots: int, *, duties: tuple[Duty, ...] = ()) -> None:
        self._slots = slots
        self._duties = duties
        self._threads = DatabaseThreads(slots + 2, "queue")
        self._loop = GreenLoop(most=slots + 2, executor=self._threads)
        # For the green thread of the bookkeeping, and for that of the duties.
        self._bell, self._end_of_duties = Bell(), Bell()
        self._messages: deque[_Message] = deque()
        self._running: dict[uuid.UUID, Claimed] = {}
        # The oldest first.
        self._ahead: list[_Ahead] = []
        self._unused: list[Claimed] = []
        # The moving average; until a run has ended, none is claimed ahead.
        self._run_seconds = math.inf
        # What has ended and is not committed yet.
        self._ended: list[EndedRun] = []
        # Results that could not be committed together. Each is committed alone: one that cannot be
        # stored holds up neither the others nor the claims. Each takes a slot, so that runs do not
        # go on without end while none of their results can be stored.
        self._apart: deque[EndedRun] = deque()
        self._apart_at = 0.0
        self._not_started: list[Claimed] = []
        self._unknown: list[Claimed] = []
        # The order of the claims, and that of the starts.
        self._turns, self._starts = Turns(), Turns()
        self._changes = ChangeCounter()
        self._stopping = threading.Event()
        self._lost_check_at = 0.0
        self._look_at = self._pause_ends_at = 0.0

    def stop(self) -> None:
        """Claims nothing more; ``run`` returns when the runs in progress have ended.

        May be called from a signal handler.
        """
        self._stopping.set()
        self._loop.call_soon(self._bell.ring)
        self._loop.call_soon(self._end_of_duties.ring)

    def run(self) -> None:
        """Works until ``stop``, through outages of the database. Only once."""
        listener = None
        if connection.vendor == "postgresql":
            listener = Listener(RUNS, lambda: self._loop.call_soon(self._bell.ring))
            listener.start()
        try:
            with self._threads:
                self._loop.run(self._keep_books)
        finally:
            if listener is not None:
                listener.stop()

    def _keep_books(self) -> None:
        if self._duties:
            self._loop.start(self._do_duties)
        try:
            while not self._is_done():
                try:
                    self._turn()
                except DatabaseUnavailable as error:
                    logger.error("The queue waits for the database: %s", _one_line(error))  # noqa: TRY400
                    # Runners of other nodes may have results to commit first, too.
                    self._lost_check_at = time.monotonic() + LOST_CHECK_SECONDS
                    close_old_connections()
                    sleep(OUTAGE_SECONDS)
        finally:
            # After a defect, nothing else would end the duties.
            self.stop()

    def _is_done(self) -> bool:
        claimed = (self._running, self._ahead, self._unused)
        ended = (self._messages, self._ended, self._apart, self._not_started, self._unknown)
        return self._stopping.is_set() and not any(claimed) and not any(ended)

    def abandon(self) -> None:
        """Ends the runs in progress as lost, because this process is about to end."""
        for claimed in list(self._running.values()):
            end_as_lost(claimed.run_id, claimed.lease_id)

    def _turn(self) -> None:
        """Commits what has ended, claims what is due, and waits for something to happen."""
        sleep(max(0.0, self._pause_ends_at - time.monotonic()))
        # Others may end in the same moment.
        give_way()
        self._take_messages()
        if time.monotonic() >= self._apart_at:
            self._commit_apart()
        self._settle_the_rest()
        self._look_after_others()
        free = self._free()
        found = self._commit_and_claim(free)
        ends_at = time.monotonic() + AHEAD_SECONDS
        self._ahead += [_Ahead(each, ends_at) for each in found.claimed]
        self._fill_slots()
        if len(found.claimed) < free:
            self._pause_ends_at = time.monotonic() + PAUSE_SECONDS
        if free:
            self._look_at = time.monotonic() + _seconds_until(found.next_due_at)
        QUEUE_SLOTS_IN_USE.set(len(self._running))
        self._wait()

    def _free(self) -> int:
        """How many runs may be claimed."""
        if self._stopping.is_set():
            return 0
        most = self._slots
        if self._run_seconds < SHORT_RUN_SECONDS:
            most += AHEAD_PER_SLOT * self._slots
        return max(0, most - len(self._running) - len(self._ahead) - len(self._apart))

    def _fill_slots(self) -> None:
        """Starts what is claimed, as fairly as it was claimed: see ``claim``."""
        while len(self._running) < self._slots:
            slots = Counter(each.entry.organisation_id for each in self._running.values())
            now = time.monotonic()
            turns = [
                (slots[organisation_id], self._starts.last_served(organisation_id), place)
                for place, (claimed, ends_at) in enumerate(self._ahead)
                # Whatever goes back may be another runner's soon.
                if ends_at > now and (organisation_id := claimed.entry.organisation_id)
            ]
            if not turns:
                return
            claimed, _ = self._ahead.pop(min(turns)[-1])
            self._starts.serve(claimed.entry.organisation_id)
            self._starts.forget_all_but(list(slots))
            self._running[claimed.run_id] = claimed
            self._loop.start(partial(self._work, claimed))

    def _take_back_unused(self) -> None:
        """Runs that were claimed ahead go back: their slots are taken for longer than it seemed."""
        now = math.inf if self._stopping.is_set() else time.monotonic()
        unused = [each for each in self._ahead if each.ends_at <= now]
        if unused:
            self._run_seconds = math.inf
            self._ahead = [each for each in self._ahead if each.ends_at > now]
            self._unused += [each.claimed for each in unused]

    def _commit_and_claim(self, free: int) -> Round:
        """One transaction for both. Raises ``DatabaseUnavailable`` if nothing was committed."""
        found = Round([], None)
        try:
            if self._ended or free:
                with transaction.atomic():
                    finish(self._ended)
                    if free:
                        found = claim_due_runs(free, self._turns)
        except DatabaseUnavailable:
            self._set_apart()
            raise
        except Exception:
            if not self._ended:
                raise
            logger.exception("%d results could not be committed together", len(self._ended))
            self._set_apart()
            self._commit_apart()
            found = Round([], timezone.now())
        self._ended = []
        return found

    def _set_apart(self) -> None:
        self._apart += self._ended
        self._ended = []

    def _commit_apart(self) -> None:
        """Commits these results one by one, until one fails: that one is the last next time.

        A result is kept until it is committed, or its lease is found gone. Never raises for the
        state of the database, which may be that of a single table or row.
        """
        while self._apart:
            try:
                _finish_alone(self._apart[0])
            except DatabaseUnavailable as error:
                run_id = self._apart[0].run.pk
                logger.error("The result of run %s waits: %s", run_id, _one_line(error))  # noqa: TRY400
                self._apart.rotate(-1)
                self._apart_at = time.monotonic() + OUTAGE_SECONDS
                close_old_connections()
                return
            self._apart.popleft()

    def _wait(self) -> None:
        """Until a message arrives, the database changes, or it is time to look."""
        has_slot = self._free() > 0
        end = self._look_at if has_slot else time.monotonic() + LOOK_SECONDS
        if self._ahead:
            end = min(end, self._ahead[0].ends_at)
        is_polling = has_slot and connection.vendor == "sqlite"
        while (left := end - time.monotonic()) > 0:
            if self._bell.wait(min(left, CHANGE_SECONDS) if is_polling else left):
                return
            if is_polling and self._changes.has_changed():
                return

    def _take_messages(self) -> None:
        while self._messages:
            self._take(self._messages.popleft())

    def _take(self, message: _Message) -> None:
        claimed = message.claimed
        if isinstance(message, EndedRun):
            self._ended.append(message)
        elif message.may_have_run:
            self._unknown.append(claimed)
        else:
            self._not_started.append(claimed)

    def _settle_the_rest(self) -> None:
        """Runs without a result: those that did not start, and those of which nothing is known."""
        if self._not_started:
            give_back(self._not_started, delay_seconds=NOT_STARTED_SECONDS)
            self._not_started = []
        self._take_back_unused()
        if self._unused:
            give_back(self._unused)
            self._unused = []
        for claimed in self._unknown:
            _lose(claimed)
        self._unknown = []

    def _look_after_others(self) -> None:
        """Every few seconds: runs of which no runner takes care."""
        if time.monotonic() < self._lost_check_at:
            return
        self._lost_check_at = time.monotonic() + LOST_CHECK_SECONDS
        # Results first: an outage of the database may have outlasted their leases.
        self._commit_and_claim(0)
        self._commit_apart()
        end_lost_runs()
        cancel_orphans()
        move_to_present()

    def _do_duties(self) -> None:
        due = [0.0] * len(self._duties)
        while not self._stopping.is_set():
            for place, (duty, seconds) in enumerate(self._duties):
                if time.monotonic() >= due[place]:
                    due[place] = time.monotonic() + seconds
                    self._do(duty)
            self._end_of_duties.wait(min(due) - time.monotonic())

    def _do(self, duty: Callable[[], object]) -> None:
        try:
            in_thread(duty)
        except DatabaseUnavailable as error:
            logger.error("A duty waits for the database: %s", _one_line(error))  # noqa: TRY400
        except Exception:
            logger.exception("A duty of the queue failed: %s", duty)

    def _work(self, claimed: Claimed) -> None:
        """In a green thread of its own."""
        message: _Message = _NotEnded(claimed, may_have_run=False)
        began = time.monotonic()
        try:
            message = run_claimed(claimed)
            self._note_length(time.monotonic() - began)
        except (SandboxBusy, SandboxUnavailable) as error:
            logger.warning("Run %s did not start: %s", claimed.run_id, error)
        except DatabaseUnavailable as error:
            logger.error("Run %s did not start: %s", claimed.run_id, _one_line(error))  # noqa: TRY400
        except Exception:
            logger.exception("Run %s: its end is unknown", claimed.run_id)
            message = _NotEnded(claimed, may_have_run=True)
        finally:
            close_old_connections()
            return_pooled_connection()
            del self._running[claimed.run_id]
            self._messages.append(message)
            self._fill_slots()
            self._bell.ring()

    def _note_length(self, seconds: float) -> None:
        known = seconds if self._run_seconds == math.inf else self._run_seconds
        self._run_seconds = 0.8 * known + 0.2 * seconds


def _seconds_until(due_at: datetime | None) -> float:
    if due_at is None:
        return LOOK_SECONDS
    return min(LOOK_SECONDS, max(0.0, (due_at - timezone.now()).total_seconds()))


def _finish_alone(ended: EndedRun) -> None:
    """Without the others, whose content the database may have refused."""
    try:
        finish([ended])
    except DatabaseUnavailable:
        raise
    except Exception:
        logger.exception("Run %s: its result cannot be stored", ended.run.pk)
        _lose(ended.claimed)


def _lose(claimed: Claimed) -> None:
    """Ends a run that has stopped as lost, and no longer counts it against limits."""
    end_as_lost(claimed.run_id, claimed.lease_id)
    if claimed.run_lease_id is not None:
        give_back_lease(claimed.run_lease_id)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
