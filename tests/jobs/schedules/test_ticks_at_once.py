"""Many runners, one run for each tick."""

import pytest

from jobs.models import Overlap, ScheduleTick
from jobs.schedules.schedules import create_schedule
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.models import Run, Script
from tests.concurrency import at_once
from tests.jobs.schedules.conftest import Clock

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_tick_runs_once_over_many_runners(
    clock: Clock, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        create_schedule(script, cron="*/10 * * * *", overlap=Overlap.ALLOW_ALL)
    for time in ("10:00:00", "10:10:00", "10:20:00"):
        clock.set(time)
        at_once(6, lambda _: run_due_schedules())
        # A runner leaves a row to the one that has it locked.
        run_due_schedules()
    assert Run.objects.count() == ScheduleTick.objects.count() == 60
    pairs = set(Run.objects.values_list("schedule_id", "scheduled_at"))
    assert len(pairs) == 60
    # No runner even tried what another one did.
    assert "is late" not in caplog.text
