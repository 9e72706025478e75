import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from accounts.models import ApiKey, Organisation
from core.database import ids
from core.database.ids import first_id_at
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


# What is rare has indexes of its own, which cost the others nothing.
_NOT_SUCCEEDED = ~Q(status=RunStatus.SUCCEEDED.value)
_NOT_BY_HOOK = ~Q(trigger=Trigger.HOOK.value)


# Of the runs in the range of an organisation.
NEWEST_FIRST = ("organisation_id", "-id")
OLDEST_FIRST = ("-organisation_id", "id")


class RunQuerySet(models.QuerySet["Run"]):
    def of_organisation(self, organisation: Organisation) -> "RunQuerySet":
        return self.filter(organisation=organisation)

    def in_range_of(self, organisation_id: uuid.UUID) -> "RunQuerySet":
        """As a range of one, which PostgreSQL reads off the organisation's own index in the orders
        below: along the primary key it would pass by all that others keep.
        """
        return self.filter(organisation__gte=organisation_id, organisation__lte=organisation_id)

    def started_between(self, since: datetime | None, until: datetime | None) -> "RunQuerySet":
        """Started at ``since`` or later and before ``until``; ``None`` is no bound."""
        rows = self
        if since is not None:
            rows = rows.filter(ids.since("started_at", since))
        if until is not None:
            rows = rows.filter(ids.before("started_at", until))
        return rows

    def called_between(self, since: datetime, until: datetime) -> "RunQuerySet":
        """Asked for in that time, by primary key alone: it can be counted without reading rows."""
        return self.filter(pk__gte=first_id_at(since), pk__lt=first_id_at(until))

    def not_succeeded(self) -> "RunQuerySet":
        return self.filter(_NOT_SUCCEEDED)

    def ended_as(self, status: str) -> "RunQuerySet":
        """SQLite uses a partial index only where its own condition stands in the query."""
        rows = self.filter(status=status)
        return rows if status == RunStatus.SUCCEEDED else rows.filter(_NOT_SUCCEEDED)

    def triggered_by(self, trigger: str) -> "RunQuerySet":
        """Likewise."""
        rows = self.filter(trigger=trigger)
        return rows if trigger == Trigger.HOOK else rows.filter(_NOT_BY_HOOK)

    def newer_than(self, run: "Run") -> "Run | None":
        """The script's run after that one."""
        return self.filter(script=run.script_id, pk__gt=run.pk).order_by("id").only("id").first()

    def older_than(self, run: "Run") -> "Run | None":
        """The script's run before that one."""
        return self.filter(script=run.script_id, pk__lt=run.pk).order_by("-id").only("id").first()


class Run(models.Model):
    """One execution of a script. Written once; later only its payload may be removed.

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

    # What is left of a payload that was removed. Null in runs from before these columns.
    request_bytes = models.IntegerField(null=True, help_text="The size of the payload.")
    response_bytes = models.IntegerField(null=True, help_text="The size of the reply.")
    payload_bytes = models.IntegerField(
        null=True,
        help_text="What the run counts against its organisation's quota: payload, reply, headers "
        "and logs. 0 when they were removed; null until they are counted.",
    )
    payload_removed_at = models.DateTimeField(
        null=True,
        help_text="When payload, reply, headers and logs were removed: the quota was used up.",
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            # With the bytes, so that they are summed up and found without reading the runs.
            models.Index(
                fields=["organisation", "-id", "payload_bytes"],
                name="run_of_organisation_with_bytes",
            ),
            models.Index(fields=["script", "-id"], name="run_of_script"),
            models.Index(fields=["hook", "-id"], name="run_of_hook"),
            models.Index(
                fields=["-id", "status"], condition=_NOT_SUCCEEDED, name="run_not_succeeded"
            ),
            models.Index(
                fields=["organisation", "-id", "status"],
                condition=_NOT_SUCCEEDED,
                name="run_not_succeeded_organisation",
            ),
            models.Index(
                fields=["script", "-id", "status"],
                condition=_NOT_SUCCEEDED,
                name="run_not_succeeded_script",
            ),
            models.Index(
                fields=["hook", "-id", "status"],
                condition=_NOT_SUCCEEDED,
                name="run_not_succeeded_hook",
            ),
            models.Index(fields=["-id", "trigger"], condition=_NOT_BY_HOOK, name="run_not_by_hook"),
            models.Index(
                fields=["organisation", "-id", "trigger"],
                condition=_NOT_BY_HOOK,
                name="run_not_by_hook_organisation",
            ),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk}"
