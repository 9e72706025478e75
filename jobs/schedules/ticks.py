"""Runs what schedules have due: one run for each tick, over any number of nodes.

Each schedule is dealt with in a transaction of its own, which inserts runs and outcomes and moves
the schedule on. A node that finds the row locked leaves it to the other one.

Others wait for these transactions, so ticks are computed before them, and a schedule that has many
runs to catch up on gets some of them at each look.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import chain

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.alerts import alert
from core.database.unavailable import DatabaseUnavailable
from jobs.audit_kinds import JobAlert
from jobs.metrics import SCHEDULE_LAG, SCHEDULE_TICKS
from jobs.models import CatchUp, Overlap, QueueEntry, Schedule, ScheduleTick, TickOutcome
from jobs.queue.enqueue import QueuedWork, enqueue
from jobs.queue.queue_limit import QueueFullError
from jobs.schedules.cron import newest_ticks, next_ticks
from scripts_engine.models import Trigger
from scripts_engine.runs.spec import Event

logger = logging.getLogger(__name__)

# More than ``MAX_CAUGHT_UP``. Of ticks before these, only the first is noted as missed.
KEPT_TICKS = 200
# As long as the longest window of catch-up.
LOOK_BACK = timedelta(days=7)
# How many runs of a schedule are queued in a transaction.
MAX_RUNS_AT_ONCE = 20
# A last tick that is further ahead is from before the clock was set back.
FAR_AHEAD = timedelta(days=1)
# With more database errors in one round, it is not the schedule's fault.
_MAX_DATABASE_ERRORS = 3


# --- What becomes of ticks ------------------------------------------------------------------------

# A tick that is later than this was missed, and runs only by catch-up.
ON_TIME = timedelta(seconds=60)
# How many missed ticks ``CatchUp.ALL`` runs at once: the newest.
MAX_CAUGHT_UP = 100

RUNS = frozenset({TickOutcome.RAN, TickOutcome.LATE})


@dataclass(frozen=True, slots=True)
class Decided:
    """A tick and its outcome; ``None``: it waits for the run before it to end."""

    tick_at: datetime
    outcome: TickOutcome | None


def decide(
    schedule: Schedule, due: Sequence[datetime], now: datetime, *, can_run: bool, is_running: bool
) -> list[Decided]:
    """What becomes of the tick that waits, if any, and of the due ones, oldest first.

    ``can_run`` says whether the script may run at all, ``is_running`` whether a run of the schedule
    has not ended.
    """
    decided = []
    waiting = schedule.buffered_tick_at
    runs_side_by_side = schedule.overlap == Overlap.ALLOW_ALL
    is_busy = is_running and not runs_side_by_side
    if waiting is not None and not (is_busy and can_run):
        decided.append(Decided(waiting, _ran(waiting, now) if can_run else _MISSED))
        is_busy = can_run and not runs_side_by_side
        waiting = None
    chosen = _chosen(schedule, due, now) if can_run else frozenset()
    for tick_at in due:
        outcome: TickOutcome | None
        if tick_at not in chosen:
            outcome = _MISSED
        elif not is_busy:
            outcome = _ran(tick_at, now)
            is_busy = not runs_side_by_side
        elif schedule.overlap == Overlap.BUFFER_ONE and waiting is None:
            outcome, waiting = None, tick_at
        else:
            outcome = TickOutcome.SKIPPED_OVERLAP
        decided.append(Decided(tick_at, outcome))
    return decided


_MISSED = TickOutcome.SKIPPED_MISSED


def _ran(tick_at: datetime, now: datetime) -> TickOutcome:
    return TickOutcome.LATE if now - tick_at > ON_TIME else TickOutcome.RAN


def _chosen(schedule: Schedule, due: Sequence[datetime], now: datetime) -> frozenset[datetime]:
    """Those on time, and the missed ones that the schedule catches up on."""
    on_time = [tick for tick in due if now - tick <= ON_TIME]
    window = timedelta(seconds=schedule.catch_up_window_seconds)
    missed = [tick for tick in due if ON_TIME < now - tick <= window]
    if schedule.catch_up == CatchUp.ALL:
        return frozenset([*missed[-MAX_CAUGHT_UP:], *on_time])
    if schedule.catch_up == CatchUp.LATEST and not on_time:
        return frozenset(missed[-1:])
    return frozenset(on_time)


# --- Running them ---------------------------------------------------------------------------------


def run_due_schedules(limit: int = 100) -> int:
    """Deals with up to ``limit`` schedules that are due, and returns their number.

    A schedule whose organisation's queue is full, or that fails, stays due. Raises a database error
    if the database is unavailable; nothing is lost, ticks are late.
    """
    done, errors = 0, 0
    seen: set[uuid.UUID] = set()
    full: set[uuid.UUID] = set()
    while done < limit and (found := _find_due(limit - done, seen, full)):
        for schedule_id, organisation_id in found:
            seen.add(schedule_id)
            if organisation_id in full:
                continue
            try:
                done += _advance(schedule_id)
            except QueueFullError:
                full.add(organisation_id)
            except DatabaseUnavailable as error:
                errors += 1
                logger.error("Schedule %s is late: %s", schedule_id, " ".join(str(error).split()))  # noqa: TRY400
                if errors >= _MAX_DATABASE_ERRORS:
                    raise
            except Exception:
                logger.exception("Schedule %s is late", schedule_id)
    return done


def _find_due(
    limit: int, seen: set[uuid.UUID], full: set[uuid.UUID]
) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """The ids of schedules and of their organisations, longest due first."""
    rows = Schedule.objects.exclude(pk__in=seen).exclude(organisation__in=full)
    running = QueueEntry.objects.filter(schedule=OuterRef("pk"))
    buffered = rows.filter(~Exists(running), buffered_tick_at__isnull=False)
    due = rows.filter(next_tick_at__lte=timezone.now())
    found = chain(
        buffered.order_by("buffered_tick_at").values_list("pk", "organisation_id")[:limit],
        due.order_by("next_tick_at").values_list("pk", "organisation_id")[:limit],
    )
    return list(dict.fromkeys(found))


def _advance(schedule_id: uuid.UUID) -> int:
    """Runs the schedule's due ticks and moves it on. Returns 0 if another node does.

    Raises ``QueueFullError`` if nothing was done for that reason.
    """
    now = timezone.now()
    is_due = Q(next_tick_at__lte=now) | Q(buffered_tick_at__isnull=False)
    due_row = Schedule.objects.filter(is_due, pk=schedule_id)
    found = due_row.first()
    if found is None:
        return 0
    due = _due_ticks(found, now)
    following = next_ticks(found.cron, found.time_zone, due[-1], 1) if due else []
    with transaction.atomic():
        # As it was: another node may have dealt with it, or a person may have changed it.
        same = due_row.filter(
            cron=found.cron, time_zone=found.time_zone, next_tick_at=found.next_tick_at
        )
        rows = same.select_related("script__organisation", "organisation")
        schedule = rows.select_for_update(of=("self",), skip_locked=True).first()
        if schedule is None:
            return 0
        if schedule.script.deleted_at is not None:
            schedule.next_tick_at = schedule.buffered_tick_at = None
        else:
            _run_ticks(schedule, due, next(iter(following), None), now)
        schedule.save(update_fields=["last_tick_at", "next_tick_at", "buffered_tick_at"])
    return 1


def _run_ticks(
    schedule: Schedule, due: list[datetime], following: datetime | None, now: datetime
) -> None:
    known = _known(schedule, due)
    can_run = schedule.script.can_run
    decided = decide(
        schedule,
        [tick for tick in due if tick not in known],
        now,
        can_run=can_run,
        is_running=QueueEntry.objects.filter(schedule=schedule).exists(),
    )
    ticks, left = _carry_out(schedule, decided)
    _keep(schedule, ticks)
    if left is not None:
        due = [tick for tick in due if tick < left]
    if due:
        schedule.last_tick_at = due[-1]
        schedule.next_tick_at = left or following
    transaction.on_commit(partial(_count, ticks, now))
    if can_run:
        _alert(schedule, ticks)


def _alert(schedule: Schedule, ticks: Sequence[ScheduleTick]) -> None:
    """Tells of missed ticks; not those of a disabled script, which miss nothing."""
    missed = [tick.tick_at for tick in ticks if tick.outcome == TickOutcome.SKIPPED_MISSED]
    if missed:
        alert(
            JobAlert.SCHEDULE_MISSED,
            schedule,
            missed=len(missed),
            first=missed[0],
            last=missed[-1],
            script={"id": schedule.script_id, "name": schedule.script.name},
        )


def _due_ticks(schedule: Schedule, now: datetime) -> list[datetime]:
    """Oldest first."""
    first = schedule.next_tick_at
    if first is None or first > now:
        return []
    after = max(first, now - LOOK_BACK)
    newest = newest_ticks(schedule.cron, schedule.time_zone, after, now, KEPT_TICKS)
    return [first, *newest]


def _known(schedule: Schedule, due: Sequence[datetime]) -> frozenset[datetime]:
    """Those that were dealt with before the clock was set back."""
    if not due:
        return frozenset()
    recorded = schedule.ticks.filter(tick_at__gte=due[0]).values_list("tick_at", flat=True)
    return frozenset([*recorded, *filter(None, [schedule.buffered_tick_at])])


def _carry_out(
    schedule: Schedule, decided: Sequence[Decided]
) -> tuple[list[ScheduleTick], datetime | None]:
    """The outcomes to record, and the first tick that is left for later: the queue has no room for
    it, or it would be one too many at once.
    """
    ticks: list[ScheduleTick] = []
    runs = 0
    for one in decided:
        if one.outcome is None:
            schedule.buffered_tick_at = one.tick_at
            continue
        run_id = None
        if one.outcome in RUNS:
            if runs == MAX_RUNS_AT_ONCE:
                return ticks, one.tick_at
            runs += 1
            try:
                run_id = enqueue(_work(schedule, one.tick_at))
            except QueueFullError:
                if one is decided[0]:
                    raise
                return ticks, one.tick_at
        if one.tick_at == schedule.buffered_tick_at:
            schedule.buffered_tick_at = None
        tick = ScheduleTick(
            schedule=schedule, tick_at=one.tick_at, outcome=one.outcome, run_id=run_id
        )
        ticks.append(tick)
    return ticks, None


def _work(schedule: Schedule, tick_at: datetime) -> QueuedWork:
    return QueuedWork(
        organisation_id=schedule.organisation_id,
        script_id=schedule.script_id,
        version_id=schedule.script.current_version_id,
        event=event_of(schedule),
        trigger=Trigger.SCHEDULE,
        schedule_id=schedule.pk,
        scheduled_at=tick_at,
    )


def event_of(schedule: Schedule, client_address: str = "") -> Event:
    return Event(
        method="POST",
        query="",
        headers=(),
        body=bytes(schedule.payload),
        client_address=client_address,
    )


def _keep(schedule: Schedule, ticks: Sequence[ScheduleTick]) -> None:
    """Records the ticks, and forgets all but the newest."""
    if not ticks:
        return
    ScheduleTick.objects.bulk_create(ticks[-KEPT_TICKS:])
    newest = schedule.ticks.order_by("-tick_at").values_list("tick_at", flat=True)
    for oldest in newest[KEPT_TICKS : KEPT_TICKS + 1]:
        schedule.ticks.filter(tick_at__lte=oldest).delete()


def _count(ticks: Sequence[ScheduleTick], now: datetime) -> None:
    for outcome, number in Counter(tick.outcome for tick in ticks).items():
        SCHEDULE_TICKS.labels(str(outcome)).inc(number)
    for tick in ticks:
        if tick.run_id is not None:
            SCHEDULE_LAG.observe(max(0.0, (now - tick.tick_at).total_seconds()))


def restart_schedules_far_ahead() -> int:
    """Lets schedules go on from now whose last tick is over a day ahead.

    The clock was wrong then, and was set back: they would stand still until that day. Ticks with a
    recorded outcome do not run again. Returns the number of schedules.
    """
    now = timezone.now()
    ahead = Schedule.objects.filter(last_tick_at__gt=now + FAR_AHEAD, next_tick_at__isnull=False)
    number = 0
    for schedule in ahead:
        following = next_ticks(schedule.cron, schedule.time_zone, now, 1)
        unchanged = Schedule.objects.filter(pk=schedule.pk, next_tick_at=schedule.next_tick_at)
        number += unchanged.update(last_tick_at=None, next_tick_at=next(iter(following), None))
    return number
