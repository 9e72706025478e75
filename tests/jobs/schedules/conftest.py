from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.models import QueueEntry, Schedule
from jobs.schedules.schedules import create_schedule
from scripts_engine.models import Script


class Clock:
    """The time, as the tests set it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 23, 9, 59, 30, tzinfo=UTC)

    def set(self, time: str) -> None:
        """To that time of the same day."""
        hour, minute, second = map(int, time.split(":"))
        self.now = self.now.replace(hour=hour, minute=minute, second=second)

    def go_on(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("django.utils.timezone.now", lambda: clock.now)
    return clock


@pytest.fixture
def every_ten_minutes(clock: Clock, script: Script) -> Callable[..., Schedule]:
    """Makes a schedule at 09:59:30, so that its first tick is at 10:00."""

    def make(**fields: Any) -> Schedule:
        return create_schedule(script, cron="*/10 * * * *", **fields)

    return make


def end_runs() -> None:
    """Takes all runs out of the queue, as if they had ended."""
    QueueEntry.objects.all().delete()


def outcomes_of(schedule: Schedule) -> dict[str, str]:
    """By the time of the tick, oldest first."""
    ticks = schedule.ticks.order_by("tick_at")
    return {f"{tick.tick_at:%H:%M}": tick.outcome for tick in ticks}
