import uuid
from datetime import UTC, datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django_tasks import TaskResultStatus
from uuid_utils.compat import uuid7

# Not the time of enqueueing: a message would wait if the clock was then set back.
AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)

# Of the tasks, by their paths.
NAMES = {
    "accounts.flows.send_pin.deliver_pin": "PIN code to deliver",
    "accounts.flows.notices.send_new_device_notice": "New device notice",
    "accounts.flows.notices.send_change_notice": "Notice of a changed account",
    "accounts.flows.notices.send_invitation": "Invitation e-mail",
    "accounts.flows.notices.send_program_login_notice": "New program login notice",
    "accounts.flows.notices.warn_of_key": "Key expiry warning",
    "accounts.flows.password_links.offer_password_reset": "Password reset requested",
    "accounts.flows.password_links.send_password_link": "Password link e-mail",
    "scripts_engine.flows.failure_notices.mail_about_failure": "Failing script e-mail",
}

_READY = Q(status=TaskResultStatus.READY)
_RUNNING = Q(status=TaskResultStatus.RUNNING)


class MessageQuerySet(models.QuerySet["Message"]):
    def due(self) -> "MessageQuerySet":
        return self.filter(_READY, due_at__lte=timezone.now())

    def running(self) -> "MessageQuerySet":
        return self.filter(_RUNNING)

    def failed(self) -> "MessageQuerySet":
        return self.filter(status=TaskResultStatus.FAILED)


class Message(models.Model):
    """A task in the background: usually a message to somebody, with its attempts.

    The arguments are readable, so they never contain a code, a link or another secret.
    """

    id: models.UUIDField[uuid.UUID, uuid.UUID] = models.UUIDField(
        primary_key=True, default=uuid7, editable=False
    )
    task_path = models.CharField(max_length=200)
    queue = models.CharField(max_length=32, help_text="Each queue has threads of its own.")
    arguments = models.JSONField(help_text="``args`` and ``kwargs`` of the task.")
    status = models.CharField(
        max_length=16, choices=TaskResultStatus.choices, default=TaskResultStatus.READY
    )
    enqueued_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(default=AT_ONCE)
    started_at = models.DateTimeField(
        null=True, help_text="The start of the latest attempt, which it identifies."
    )
    finished_at = models.DateTimeField(null=True)
    worker_ids = models.JSONField(default=list, help_text="The worker of each attempt.")
    traceback = models.TextField(blank=True, help_text="Of the latest attempt that failed.")

    objects = MessageQuerySet.as_manager()

    class Meta:
        # As its page calls them, which shows how each task went.
        verbose_name = "background task"
        indexes = [
            models.Index(fields=["queue", "due_at", "id"], condition=_READY, name="message_due"),
            models.Index(fields=["started_at"], condition=_RUNNING, name="message_running"),
            models.Index(fields=["status", "finished_at"], name="message_finished"),
        ]

    def __str__(self) -> str:
        return name_of(self.task_path)


def name_of(task_path: str) -> str:
    """The task's name, or that of its function if the task no longer exists."""
    return NAMES.get(task_path) or task_path.rpartition(".")[2].replace("_", " ").capitalize()
