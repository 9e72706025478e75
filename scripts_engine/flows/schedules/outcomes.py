"""Decides what becomes of ticks that are due, without the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scripts_engine.models import CatchUp, Overlap, Schedule, TickOutcome

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
