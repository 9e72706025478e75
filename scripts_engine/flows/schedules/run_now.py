"""Runs a schedule outside its ticks."""

from django.core.exceptions import ValidationError

from core.http.origin import NOWHERE, Origin
from scripts_engine.errors import OrganisationInactiveError
from scripts_engine.flows.author import Author
from scripts_engine.flows.queue.enqueue import QueuedWork, enqueue
from scripts_engine.flows.schedules.ticks import event_of
from scripts_engine.models import Run, Schedule, Trigger


def run_schedule_now(schedule: Schedule, *, author: Author, origin: Origin = NOWHERE) -> Run:
    """Queues a run with the schedule's payload, even if the schedule is disabled or has a run.

    The run has no tick, and ticks go on as before; a tick at which the run has not ended meets it
    like a run of an earlier tick. Raises ``ValidationError`` if the script is disabled,
    ``OrganisationInactiveError`` or ``QueueFullError``.
    """
    script = schedule.script
    if not schedule.organisation.is_active:
        raise OrganisationInactiveError
    if not script.is_enabled or script.deleted_at is not None:
        message = "The script is disabled. Enable it first."
        raise ValidationError({"id": ValidationError(message, code="invalid")})
    work = QueuedWork(
        organisation_id=schedule.organisation_id,
        script_id=script.pk,
        version_id=script.current_version_id,
        event=event_of(schedule, origin.client_address),
        trigger=Trigger.SCHEDULE,
        started_by=author,
        schedule_id=schedule.pk,
    )
    return Run.objects.get(pk=enqueue(work).run_id)
