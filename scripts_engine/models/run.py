from django.conf import settings
from django.db import models
from uuid_utils.compat import uuid7

from accounts.models import ApiKey, Organisation
from scripts_engine.models.hook import Hook
from scripts_engine.models.script import Script
from scripts_engine.models.script_version import ScriptVersion


class RunStatus(models.TextChoices):
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    TIMED_OUT = "timed-out", "Timed out"
    OUT_OF_MEMORY = "out-of-memory", "Out of memory"


class Trigger(models.TextChoices):
    HOOK = "hook", "Webhook"
    ADMIN_GRAPHQL = "admin-graphql", "Admin GraphQL"
    ADMIN = "admin", "Admin"


class RunQuerySet(models.QuerySet["Run"]):
    def of_organisation(self, organisation: Organisation) -> "RunQuerySet":
        return self.filter(organisation=organisation)


class Run(models.Model):
    """One execution of a script. Written once, never changed.

    Payload and reply are the bytes as they were; text is made of them for display only.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Every index costs each run a write: the composite ones below serve these columns.
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    script = models.ForeignKey(
        Script, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    script_version = models.ForeignKey(
        ScriptVersion, null=True, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    unsaved_source = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="What ran, where it is no version: a source that was tried before saving.",
    )
    hook = models.ForeignKey(
        Hook, null=True, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    trigger = models.CharField(max_length=20, choices=Trigger.choices)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    started_with = models.ForeignKey(
        ApiKey, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    status = models.CharField(max_length=20, choices=RunStatus.choices)
    started_at = models.DateTimeField(help_text="When the script was handed over.")
    queued_ms = models.FloatField(
        "waited (ms)", help_text="For a free sandbox, in ms: not counted as running."
    )
    duration_ms = models.FloatField("ran (ms)", help_text="How long the script ran, in ms.")

    request_method = models.CharField(max_length=10, help_text="GET or POST.")
    request_query = models.TextField(blank=True, help_text="What stood behind the ?.")
    request_headers = models.JSONField(default=list)
    request_body = models.BinaryField()
    client_address = models.GenericIPAddressField(null=True)

    response_status = models.PositiveSmallIntegerField(help_text="The HTTP status of the answer.")
    response_headers = models.JSONField(default=list)
    response_body = models.BinaryField()

    logs = models.JSONField(default=list, help_text="[{at, level, text}], at in epoch seconds")
    host_calls = models.JSONField(
        default=list, help_text="[{name, offsetMs, durationMs, error}], offset from the start"
    )
    error_message = models.TextField(blank=True)
    error_line = models.PositiveIntegerField(null=True)
    error_traceback = models.TextField(blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "-id"], name="run_of_organisation"),
            models.Index(fields=["script", "-id"], name="run_of_script"),
            models.Index(fields=["hook", "-id"], name="run_of_hook"),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk}"
