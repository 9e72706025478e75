"""What jobs ask of the apps below when rows are deleted, or peppers change."""

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from core.database.batches import delete_in_batches
from core.encryption import Ciphertext, register_ciphertext
from core.upkeep import register_duties
from jobs.models import Message, QueueEntry, QueueKey, RunLease
from jobs.models.queue import not_needed_by_queue
from jobs.queue.cancel import cancel_runs_of
from jobs.queue.hidden_parts import QUEUED_CALLS
from jobs.schedules.schedules import delete_schedules_of
from jobs.schedules.ticks import restart_schedules_far_ahead
from scripts_engine.runs.retention import keep_runs, when_script_is_deleted


def forget_ended_leases() -> int:
    return delete_in_batches(RunLease.objects.ended())


def forget_expired_queue_keys() -> int:
    return delete_in_batches(QueueKey.objects.expired(), order=("expires_at",))


def forget_finished_tasks() -> int:
    """Deletes finished messages, since their arguments contain e-mail addresses."""
    now = timezone.now()
    succeeded = Q(status="SUCCESSFUL", finished_at__lte=now - settings.TASKS_KEPT)
    failed = Q(status="FAILED", finished_at__lte=now - settings.FAILED_TASKS_KEPT)
    return delete_in_batches(Message.objects.filter(succeeded | failed))


def register() -> None:
    keep_runs(not_needed_by_queue)
    when_script_is_deleted(cancel_runs_of)
    when_script_is_deleted(delete_schedules_of)
    register_duties(
        forget_ended_leases,
        forget_expired_queue_keys,
        forget_finished_tasks,
        restart_schedules_far_ahead,
    )
    register_ciphertext(
        Ciphertext(
            "queued_calls",
            QueueEntry,
            "hidden_ciphertext",
            QUEUED_CALLS,
            lambda entry: entry.payload_of,
        )
    )
