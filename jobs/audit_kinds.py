"""What the audit log records of the queue and schedules, and what alerts tell."""

from django.db.models import TextChoices

from accounts.models.auth_event import register_kinds


class JobEvent(TextChoices):
    QUEUE_PAUSED = "queue.paused", "Queue paused"
    QUEUE_RESUMED = "queue.resumed", "Queue resumed"
    RUN_CANCELLED = "run.cancelled", "Queued run cancelled"
    RUNS_REPLAYED = "runs.replayed", "Runs replayed"
    RUNS_DISMISSED = "runs.dismissed", "Dead letters dismissed"
    SCHEDULE_CREATED = "schedule.created", "Schedule created"
    SCHEDULE_CHANGED = "schedule.changed", "Schedule changed"
    SCHEDULE_DELETED = "schedule.deleted", "Schedule deleted"


class JobSubject(TextChoices):
    SCHEDULE = "schedule", "Schedule"


class JobAlert(TextChoices):
    DEAD_LETTER = "dead_letter", "A queued run has failed for good"
    SCHEDULE_MISSED = "schedule.missed", "A schedule has missed ticks"


def register() -> None:
    register_kinds(JobEvent, JobSubject)
