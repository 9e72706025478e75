"""Pauses and resumes the queue of a script or of an organisation."""

from django.db import transaction
from django.utils import timezone

from accounts.flows.organisations import record_about_organisation
from accounts.models import Organisation
from core.http.origin import NOWHERE, Origin
from jobs.audit_kinds import JobEvent
from jobs.models import PausedQueue
from jobs.queue.wake_up import wake_runners
from scripts_engine.flows.scripts import record_about_script
from scripts_engine.models import Script


def pause_script(script: Script, *, origin: Origin = NOWHERE) -> None:
    """Lets the script's queued runs wait. Runs in progress end."""
    with transaction.atomic():
        running = Script.objects.filter(pk=script.pk, queue_paused_at__isnull=True)
        if running.update(queue_paused_at=timezone.now()):
            record_about_script(JobEvent.QUEUE_PAUSED, script, origin)


def resume_script(script: Script, *, origin: Origin = NOWHERE) -> None:
    with transaction.atomic():
        paused = Script.objects.filter(pk=script.pk, queue_paused_at__isnull=False)
        if paused.update(queue_paused_at=None):
            record_about_script(JobEvent.QUEUE_RESUMED, script, origin)
            transaction.on_commit(wake_runners)


def pause_organisation(organisation: Organisation, *, origin: Origin = NOWHERE) -> None:
    """Lets all queued runs of the organisation wait. Runs in progress end."""
    with transaction.atomic():
        _, is_new = PausedQueue.objects.get_or_create(organisation=organisation)
        if is_new:
            record_about_organisation(JobEvent.QUEUE_PAUSED, organisation, origin)


def resume_organisation(organisation: Organisation, *, origin: Origin = NOWHERE) -> None:
    with transaction.atomic():
        if PausedQueue.objects.filter(organisation=organisation).delete()[0]:
            record_about_organisation(JobEvent.QUEUE_RESUMED, organisation, origin)
            transaction.on_commit(wake_runners)
