import uuid
from collections.abc import Collection
from datetime import datetime
from http import HTTPStatus

from django.conf import settings
from django.db import models
from django.db.models import Q
from uuid_utils.compat import uuid7

from accounts.models import ApiKey, Organisation
from core.database import ids
from core.database.commit_order import CommitNumber
from core.database.ids import first_id_at
from core.database.schema import LooseReference
from scripts_engine.models.script import Script, ScriptVersion


class RunStatus(models.TextChoices):
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    TIMED_OUT = "timed-out", "Timed out"
    OUT_OF_MEMORY = "out-of-memory", "Out of memory"
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    LOST = "lost", "Lost"
    CANCELLED = "cancelled", "Cancelled"


# Runs that have not ended: each has a ``QueueEntry``.
UNENDED = (RunStatus.QUEUED.value, RunStatus.RUNNING.value)
# How an attempt may fail.
FAILURES = (
    RunStatus.FAILED.value,
    RunStatus.TIMED_OUT.value,
    RunStatus.OUT_OF_MEMORY.value,
    RunStatus.LOST.value,
)


class Trigger(models.TextChoices):
    HOOK = "hook", "Webhook"
    ADMIN_GRAPHQL = "admin-graphql", "Admin GraphQL"
    ADMIN = "admin", "Admin"
    QUEUE = "queue", "Queue"
    SCHEDULE = "schedule", "Schedule"
    REPLAY = "replay", "Replay"
    TEST = "test", "Test event"
    ALERT = "alert", "Alert"


# A caller made the request, and got an answer.
CALLED = (Trigger.HOOK, Trigger.ADMIN_GRAPHQL, Trigger.ADMIN)


# How a run may have ended after its script ran.
OUTCOMES = (RunStatus.SUCCEEDED, *map(RunStatus, FAILURES))


# Rare runs have partial indexes, which cost nothing when other runs are recorded.
_NOT_SUCCEEDED = ~Q(status=RunStatus.SUCCEEDED.value)
_NOT_BY_HOOK = ~Q(trigger=Trigger.HOOK.value)
# What a person tries, or sends to a hook as a test: shown like other runs, but counted nowhere.
_TRIED = Q(is_draft=True) | Q(trigger=Trigger.TEST.value)
_OTHER_THAN_OK = ~Q(response_status=HTTPStatus.OK.value)
_DEAD_LETTER = Q(is_dead_letter=True)
_LATER_ATTEMPT = Q(first_run__isnull=False)
# Failed, and another attempt followed. Each status stands alone, so that SQLite recognises the
# index's condition in a query.
_FOLLOWED = (
    Q(attempt__isnull=False, is_dead_letter__isnull=True)
    & _NOT_SUCCEEDED
    & ~Q(status=RunStatus.QUEUED.value)
    & ~Q(status=RunStatus.RUNNING.value)
    & ~Q(status=RunStatus.CANCELLED.value)
)
_PUSHED = Q(pushed_by__isnull=False)
_REPLAY = Q(replay_of__isnull=False)
_ENDED = Q(ended_in__isnull=False)
_OF_SCHEDULE = Q(schedule_id__isnull=False)

# Orders for ``in_range_of``, which the index of the organisation serves.
NEWEST_FIRST = ("organisation_id", "-id")
OLDEST_FIRST = ("-organisation_id", "id")


class RunQuerySet(models.QuerySet["Run"]):
    def of_organisation(self, organisation: Organisation) -> "RunQuerySet":
        return self.filter(organisation=organisation)

    def in_range_of(self, organisation_id: uuid.UUID) -> "RunQuerySet":
        """The organisation's runs, selected by a range of one organisation.

        With an equality, PostgreSQL may order by the primary key instead of the organisation's
        index, and then scans the runs of all other organisations.
        """
        return self.filter(organisation__gte=organisation_id, organisation__lte=organisation_id)

    def started_between(self, since: datetime | None, until: datetime | None) -> "RunQuerySet":
        """Started at ``since`` or later and before ``until``; ``None`` means unbounded."""
        rows = self
        if since is not None:
            rows = rows.filter(ids.since("started_at", since))
        if until is not None:
            rows = rows.filter(ids.before("started_at", until))
        return rows

    def called_between(self, since: datetime, until: datetime) -> "RunQuerySet":
        """Requested in that period, by primary key alone, so that no rows are read to count."""
        return self.filter(pk__gte=first_id_at(since), pk__lt=first_id_at(until))

    def called_since(self, since: datetime) -> "RunQuerySet":
        """Requested at that time or later, by primary key alone, like ``called_between``."""
        return self.filter(pk__gte=first_id_at(since))

    def counted(self) -> "RunQuerySet":
        """All runs but those of drafts and test events.

        Whatever counts runs, or tells that a script fails, counts these.
        """
        return self.exclude(_TRIED)

    def not_counted(self) -> "RunQuerySet":
        """Runs of drafts and test events, which affect only who started them."""
        return self.filter(_TRIED)

    def ended(self) -> "RunQuerySet":
        return self.exclude(status__in=UNENDED)

    def of_drafts(self) -> "RunQuerySet":
        """Repeats the index's condition for SQLite, like ``ended_as``."""
        return self.filter(_TRIED, is_draft=True)

    def answered_with(self, statuses: range) -> "RunQuerySet":
        """Repeats the index's condition for SQLite, like ``ended_as``."""
        rows = self.filter(response_status__gte=statuses.start, response_status__lt=statuses.stop)
        return rows if HTTPStatus.OK in statuses else rows.filter(_OTHER_THAN_OK)

    def not_succeeded(self) -> "RunQuerySet":
        """Those that failed, were cancelled, or have not ended."""
        return self.filter(_NOT_SUCCEEDED)

    def failed(self) -> "RunQuerySet":
        """Repeats the index's condition for SQLite, like ``ended_as``."""
        return self.filter(_NOT_SUCCEEDED, status__in=FAILURES)

    def dead_letters(self) -> "RunQuerySet":
        """Accepted work that failed for good and was not replayed since."""
        return self.filter(_DEAD_LETTER)

    def last_attempts(self) -> "RunQuerySet":
        """Leaves out failed attempts that another one followed."""
        return self.exclude(attempt__isnull=False, status__in=FAILURES, is_dead_letter__isnull=True)

    def followed(self) -> "RunQuerySet":
        """The others: failed attempts that another one followed."""
        return self.filter(_FOLLOWED)

    def attempts_of(self, first_run_id: uuid.UUID) -> "RunQuerySet":
        """The first run and all later attempts at the same work, whose ids it looks up at once.

        As an alternative in one query, SQLite would search all runs of the organisation for them.
        """
        later = Run.objects.filter(_LATER_ATTEMPT, first_run=first_run_id)
        return self.filter(pk__in=[first_run_id, *later.order_by().values_list("pk", flat=True)])

    def later_attempts_of(self, first_run_ids: Collection[uuid.UUID]) -> "RunQuerySet":
        """Attempts after the first ones; repeats the index's condition, like ``ended_as``."""
        return self.filter(_LATER_ATTEMPT, first_run__in=first_run_ids)

    def pushed_by_any(self, run_ids: Collection[uuid.UUID]) -> "RunQuerySet":
        """The first attempts at what these runs pushed, found by the index of pushed runs."""
        pushed = Run.objects.filter(_PUSHED, pushed_by__in=run_ids, first_run__isnull=True)
        return self.filter(pk__in=pushed.order_by().values("pk"))

    def replays_of_any(self, run_ids: Collection[uuid.UUID]) -> "RunQuerySet":
        """All attempts at replays of these runs, whose ids it looks up at once, by their index."""
        replays = Run.objects.filter(_REPLAY, replay_of__in=run_ids)
        return self.filter(pk__in=list(replays.order_by().values_list("pk", flat=True)))

    def ended_as(self, status: str) -> "RunQuerySet":
        """SQLite uses a partial index only if the query contains the index's condition."""
        rows = self.filter(status=status)
        return rows if status == RunStatus.SUCCEEDED else rows.filter(_NOT_SUCCEEDED)

    def triggered_by(self, trigger: str) -> "RunQuerySet":
        """Repeats the index's condition for SQLite, like ``ended_as``."""
        rows = self.filter(trigger=trigger)
        return rows if trigger == Trigger.HOOK else rows.filter(_NOT_BY_HOOK)

    def newer_than(self, run: "Run") -> "Run | None":
        """The script's next run."""
        return self.filter(script=run.script_id, pk__gt=run.pk).order_by("id").only("id").first()

    def older_than(self, run: "Run") -> "Run | None":
        """The script's previous run."""
        return self.filter(script=run.script_id, pk__lt=run.pk).order_by("-id").only("id").first()


class Run(models.Model):
    """One execution of a script, or one that is queued.

    Immutable once it has ended, except that its payload may be removed and that a dead letter is
    settled by its replay. Payload and reply are stored as bytes, and decoded for display only.

    Each attempt at queued work is a run of its own. The first one has the payload; the later ones
    refer to it.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # No index of their own, which each insert would pay for: the composite ones below serve.
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    script = models.ForeignKey(
        Script, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    # Without a constraint too, or the database would read all runs when a version is deleted. Only
    # versions that no run names are.
    script_version = models.ForeignKey(
        ScriptVersion,
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="runs",
        db_index=False,
        db_constraint=False,
    )
    is_draft = models.BooleanField(
        "draft",
        default=False,
        db_default=False,
        help_text="Whether what ran had never been live: a draft, or a source that was not saved.",
    )
    unsaved_source = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The source that ran, if it was tried without being saved.",
    )
    # Not foreign keys: what starts runs belongs to apps above this one.
    hook_id = models.UUIDField(null=True, help_text="The HookID, if a webhook was called.")
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
    started_at = models.DateTimeField(help_text="When the script started.")
    queued_ms = models.FloatField(
        "queue time (ms)", help_text="Wait for a free sandbox, in ms; not part of the duration."
    )
    duration_ms = models.FloatField("duration (ms)", help_text="Time that the script ran, in ms.")
    cpu_ms = models.FloatField(
        "CPU time (ms)", default=0.0, db_default=0.0, help_text="CPU time that it took, in ms."
    )

    request_method = models.CharField(max_length=10, help_text="GET or POST.")
    request_query = models.TextField(blank=True, help_text="The query string.")
    request_path = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The path after the hook's own address, decoded; empty without one.",
    )
    request_headers = models.JSONField(default=list)
    request_body = models.BinaryField()
    client_address = models.GenericIPAddressField(null=True)

    # Null and not blank: SQLite adds a column that is not null by copying the table.
    sender = models.CharField(  # noqa: DJ001
        max_length=32, null=True, help_text="The hook's sender at the time of the call."
    )
    verified = models.CharField(  # noqa: DJ001
        max_length=16,
        null=True,
        help_text="How strongly the call proves its sender, for example “signed”.",
    )
    # Of text without a length: SQLite chooses indexes by the declared width of rows.
    event_id = models.TextField(  # noqa: DJ001
        null=True,
        help_text="The sender's id of the event, out of signed material. Empty if deliveries are "
        "recognised by it and the call had none; null if they are not.",
    )

    response_status = models.PositiveSmallIntegerField(help_text="The HTTP status of the response.")
    response_headers = models.JSONField(default=list)
    response_body = models.BinaryField()

    logs = models.JSONField(default=list, help_text="[{at, level, text}], at in epoch seconds")
    host_calls = models.JSONField(
        default=list,
        help_text="[{name, summary, offsetMs, durationMs, error, hint}], offset from the start",
    )
    error_message = models.TextField(blank=True)
    error_line = models.PositiveIntegerField(null=True)
    error_traceback = models.TextField(blank=True)

    # Kept when the payload is removed.
    request_bytes = models.IntegerField(default=0, help_text="The size of the payload.")
    response_bytes = models.IntegerField(default=0, help_text="The size of the reply.")
    payload_bytes = models.IntegerField(
        default=0,
        help_text="Bytes counted against the organisation's quota: payload, reply, headers and "
        "logs. 0 if they were removed.",
    )
    payload_removed_at = models.DateTimeField(
        null=True,
        help_text="When payload, reply, headers and logs were removed, to keep within the quota.",
    )

    # All are null in runs that never were in the queue.
    attempt = models.PositiveSmallIntegerField(
        null=True, help_text="The number of the attempt, from 1."
    )
    first_run = LooseReference(
        "self",
        related_name="later_attempts",
        help_text="The first attempt, whose payload this one has; null if it is the first itself.",
    )
    pushed_by = LooseReference(
        "self",
        related_name="pushed_runs",
        help_text="The run whose script put this one into the queue.",
    )
    replay_of = LooseReference(
        "self",
        related_name="+",
        help_text="The run whose payload this one runs again.",
    )
    chain_depth = models.PositiveSmallIntegerField(
        null=True, help_text="How many runs pushed one another until this one was pushed."
    )
    is_dead_letter = models.BooleanField(
        "dead letter", null=True, help_text="The last attempt failed, and nobody replayed it yet."
    )
    schedule_id = models.UUIDField(null=True, help_text="The schedule that ran it.")
    scheduled_at = models.DateTimeField(null=True, help_text="The schedule's tick.")
    is_of_alert = models.BooleanField(
        "from an alert",
        null=True,
        help_text="It was run with an alert, or follows from such a run by a push or a replay, and "
        "so raises no alert; null if neither.",
    )
    ended_in = CommitNumber(
        null=True, editable=False, help_text="The transaction that it ended in; null until then."
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            # Includes the bytes, so that they are added up without reading the runs.
            models.Index(
                fields=["organisation", "-id", "payload_bytes"],
                name="run_of_organisation_with_bytes",
            ),
            models.Index(
                fields=["organisation", "ended_in", "id"], condition=_ENDED, name="run_ended"
            ),
            models.Index(fields=["ended_in"], condition=_ENDED, name="run_ended_last"),
            models.Index(fields=["script", "-id"], name="run_of_script"),
            models.Index(fields=["hook_id", "-id"], name="run_of_hook"),
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
                fields=["hook_id", "-id", "status"],
                condition=_NOT_SUCCEEDED,
                name="run_not_succeeded_hook",
            ),
            models.Index(fields=["-id", "trigger"], condition=_NOT_BY_HOOK, name="run_not_by_hook"),
            models.Index(
                fields=["organisation", "-id", "trigger"],
                condition=_NOT_BY_HOOK,
                name="run_not_by_hook_organisation",
            ),
            models.Index(fields=["-id", "status"], condition=_TRIED, name="run_tried"),
            models.Index(
                fields=["organisation", "-id", "status"],
                condition=_TRIED,
                name="run_tried_organisation",
            ),
            models.Index(
                fields=["script", "-id", "status"], condition=_TRIED, name="run_tried_script"
            ),
            models.Index(
                fields=["hook_id", "-id", "status"], condition=_TRIED, name="run_tried_hook"
            ),
            models.Index(
                fields=["-id", "response_status"],
                condition=_OTHER_THAN_OK,
                name="run_other_than_ok",
            ),
            models.Index(
                fields=["organisation", "-id", "response_status"],
                condition=_OTHER_THAN_OK,
                name="run_other_than_ok_organisation",
            ),
            models.Index(fields=["-id"], condition=_DEAD_LETTER, name="run_dead_letter"),
            models.Index(
                fields=["organisation", "-id"],
                condition=_DEAD_LETTER,
                name="run_dead_letter_organisation",
            ),
            models.Index(
                fields=["first_run", "id"], condition=_LATER_ATTEMPT, name="run_later_attempt"
            ),
            # With all that lists are filtered by, so that these are counted on the index alone.
            models.Index(
                fields=[
                    "organisation",
                    "script",
                    "hook_id",
                    "status",
                    "id",
                    "attempt",
                    "is_dead_letter",
                ],
                condition=_FOLLOWED,
                name="run_followed",
            ),
            models.Index(fields=["pushed_by", "id"], condition=_PUSHED, name="run_pushed"),
            models.Index(fields=["replay_of", "id"], condition=_REPLAY, name="run_replay"),
            models.Index(
                fields=["schedule_id", "-id"], condition=_OF_SCHEDULE, name="run_scheduled"
            ),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk}"

    @property
    def has_ended(self) -> bool:
        return self.status not in UNENDED

    def payload_run(self) -> "Run | None":
        """The run that has the payload: this one or its first attempt, if that is still there."""
        if self.first_run_id is None:
            return self
        firsts = Run.objects.filter(organisation=self.organisation_id)
        return firsts.filter(pk=self.first_run_id).first()

    @property
    def has_run(self) -> bool:
        """Whether its script has run, as far as is known."""
        return self.has_ended and self.status != RunStatus.CANCELLED

    @property
    def first_attempt_id(self) -> uuid.UUID:
        return self.first_run_id or self.pk
