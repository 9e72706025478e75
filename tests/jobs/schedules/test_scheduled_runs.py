"""Schedules on a real runner, which has them as a duty."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Organisation
from jobs.models import QueueEntry, Schedule
from jobs.queue.runner import Runner
from jobs.schedules.schedules import create_schedule
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.models import Run, RunStatus
from tests.factories import make_script

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_runner_runs_what_is_due_and_the_script_sees_the_tick(acme: Organisation) -> None:
    source = """return {trigger = params.get("trigger"), at = params.get("scheduled_at"),
        body = params.get("body"), attempt = params.get("attempt")}"""
    schedule = create_schedule(make_script(acme, source), cron="0 0 1 1 *", payload=b"order")
    tick = timezone.now().replace(microsecond=0) - timedelta(seconds=2)
    Schedule.objects.filter(pk=schedule.pk).update(next_tick_at=tick)

    def stop_when_done() -> None:
        if Run.objects.exists() and not QueueEntry.objects.exists():
            runner.stop()

    runner = Runner(2, duties=((run_due_schedules, 1.0), (stop_when_done, 0.02)))
    runner.run()
    run = Run.objects.get()
    assert run.status == RunStatus.SUCCEEDED, run.error_message
    assert json.loads(bytes(run.response_body)) == {
        "trigger": "schedule",
        "at": tick.isoformat(),
        "body": "order",
        "attempt": "1",
    }
    assert (run.schedule_id, run.scheduled_at) == (schedule.pk, tick)
    assert list(schedule.ticks.values_list("outcome", "run_id")) == [("ran", run.pk)]
    assert not QueueEntry.objects.exists()
