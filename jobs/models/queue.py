"""The queue: its entries, keys and pauses, and the limits and leases of runs in progress."""

import hashlib
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from django.db import models
from django.db.models import OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Organisation
from jobs.models.schedule import Schedule
from scripts_engine.models.run import Run, RunQuerySet
from scripts_engine.models.script import Script

# A lease, or a key's reservation, that ends later than any new one could is from before the clock
# was set back.
MAX_LEASE = timedelta(minutes=2)

_WAITING = Q(lease_id__isnull=True)
_LEASED = Q(lease_id__isnull=False)


class QueueEntryQuerySet(models.QuerySet["QueueEntry"]):
    def of_organisation(self, organisation: Organisation) -> "QueueEntryQuerySet":
        return self.filter(organisation=organisation)

    def waiting(self) -> "QueueEntryQuerySet":
        """Those that no runner has taken, due or not."""
        return self.filter(_WAITING)

    def due(self) -> "QueueEntryQuerySet":
        return self.waiting().filter(due_at__lte=timezone.now())

    def leased(self) -> "QueueEntryQuerySet":
        return self.filter(_LEASED)


class QueueEntry(models.Model):
    """What the queue knows of a run that has not ended: when it is due, and who runs it.

    Narrow and short-lived, apart from the runs, so that claiming stays as fast with many runs as
    with few. Created and deleted in the same transactions as the run's status.
    """

    run = models.OneToOneField(
        Run, primary_key=True, on_delete=models.CASCADE, related_name="queue_entry"
    )
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    # The index of the script's runs in the order in which they are due serves it too.
    script = models.ForeignKey(
        Script, on_delete=models.CASCADE, related_name="queue_entries", db_index=False
    )
    hook_id = models.UUIDField(null=True, help_text="The run's hook, for its ``RunLimits``.")
    # Without a constraint, like the run's: its attempts go on when the schedule is deleted.
    schedule = models.ForeignKey(
        Schedule,
        null=True,
        on_delete=models.SET_NULL,
        related_name="queue_entries",
        db_constraint=False,
    )
    payload_of = models.UUIDField(db_index=True, help_text="The run that has the payload.")
    due_at = models.DateTimeField()
    attempt = models.PositiveSmallIntegerField(default=1)
    max_attempts = models.PositiveSmallIntegerField()
    # The parts of the call that its record hides, for example an Authorization header.
    hidden_ciphertext = models.BinaryField(null=True, editable=False)
    lease_id = models.UUIDField(null=True, help_text="The claim of the runner that has the run.")
    lease_ends_at = models.DateTimeField(
        null=True, help_text="From then on, the run counts as lost."
    )

    objects = QueueEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "queue entries"
        indexes = [
            models.Index(
                fields=["organisation", "due_at", "run"], condition=_WAITING, name="queue_waiting"
            ),
            models.Index(
                fields=["organisation", "script", "due_at", "run"],
                condition=_WAITING,
                name="queue_waiting_by_script",
            ),
            models.Index(fields=["script", "due_at", "run"], name="queue_of_script"),
            models.Index(
                fields=["lease_ends_at", "organisation"], condition=_LEASED, name="queue_leased"
            ),
        ]

    def __str__(self) -> str:
        return f"Queue entry {self.pk}"


def not_needed_by_queue(runs: RunQuerySet) -> RunQuerySet:
    """Those of the runs that neither wait nor run, and whose payload no later attempt needs.

    Looks up each run in two indexes. PostgreSQL would turn EXISTS into a join, underestimate its
    rows, and then read all entries and all runs for a few of them.
    """
    return runs.filter(
        ~_is_found(QueueEntry.objects.filter(run=OuterRef("pk"))),
        ~_is_found(QueueEntry.objects.filter(payload_of=OuterRef("pk"))),
    )


def _is_found(entries: QueueEntryQuerySet) -> Coalesce:
    found = entries.order_by().values(is_found=Value(True))[:1]
    return Coalesce(Subquery(found, output_field=models.BooleanField()), False)


class KeyHolder(NamedTuple):
    run_id: uuid.UUID
    """The run that is queued with the key, or will be."""
    reserved_by: uuid.UUID | None
    """The run in progress that pushes it; ``None`` if it is queued."""


class QueueKeyQuerySet(models.QuerySet["QueueKey"]):
    def expired(self) -> "QueueKeyQuerySet":
        return self.filter(expires_at__lte=timezone.now())

    def find_holder(self, digest: str) -> KeyHolder | None:
        now = timezone.now()
        is_valid = Q(reserved_by=None) | Q(expires_at__lte=now + MAX_LEASE)
        live = self.filter(is_valid, pk=digest, expires_at__gt=now)
        row = live.values_list("run_id", "reserved_by").first()
        return None if row is None else KeyHolder(*row)


def key_digest(script_id: uuid.UUID, key: str) -> str:
    return hashlib.sha256(f"{script_id} {key}".encode("utf-8", "surrogatepass")).hexdigest()


class QueueKey(models.Model):
    """A key under which work was queued, so that the same work is not queued again.

    Reserved, for as long as it may take, while a run that pushes with it is in progress.
    """

    digest = models.CharField(
        max_length=64, primary_key=True, help_text="SHA-256 of the script's id and the key."
    )
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    # Not a foreign key: the run may be deleted before the key.
    run_id = models.UUIDField()
    reserved_by = models.UUIDField(
        null=True, help_text="The run that pushes this one, while it is in progress."
    )
    expires_at = models.DateTimeField(db_index=True)

    objects = QueueKeyQuerySet.as_manager()

    def __str__(self) -> str:
        return f"Key of run {self.run_id}"


class PausedQueue(models.Model):
    """The queue of this organisation is paused: its runs wait."""

    organisation = models.OneToOneField(
        Organisation, primary_key=True, on_delete=models.CASCADE, related_name="paused_queue"
    )
    paused_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"Paused queue of {self.organisation_id}"


# --- Runs at the same time ------------------------------------------------------------------------


class CallerLimits(NamedTuple):
    """What a caller says of its runs; ``None``: nothing."""

    max_concurrent_runs: int | None = None
    max_attempts: int | None = None
    version_id: uuid.UUID | None = None


class RunLimitsManager(models.Manager["RunLimits"]):
    def set_all(self, limits: Mapping[uuid.UUID, CallerLimits]) -> None:
        """Sets the limits of these callers, by two statements."""
        rows = [
            RunLimits(caller_id=caller_id, **each._asdict())
            for caller_id, each in limits.items()
            if any(value is not None for value in each)
        ]
        self.filter(pk__in=limits.keys() - {row.pk for row in rows}).delete()
        self.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["caller_id"],
            update_fields=CallerLimits._fields,
        )


class RunLimits(models.Model):
    """What one caller says of the runs that it starts: the app that knows the caller writes it.

    A caller that says nothing has no row.
    """

    caller_id = models.UUIDField(
        primary_key=True, help_text="What starts the runs, for example the HookID."
    )
    max_concurrent_runs = models.PositiveIntegerField(
        null=True, help_text="Runs at the same time; null if unlimited."
    )
    max_attempts = models.PositiveSmallIntegerField(
        null=True, help_text="How often a queued run is tried; null for the usual number."
    )
    # Not a foreign key: the caller's own pin keeps the version.
    version_id = models.UUIDField(
        null=True, help_text="The version that its runs are pinned to; null: the live one."
    )

    objects = RunLimitsManager()

    def __str__(self) -> str:
        return f"Limits of the runs of {self.caller_id}"


class RunLeaseQuerySet(models.QuerySet["RunLease"]):
    def ended(self) -> "RunLeaseQuerySet":
        return self.filter(ends_at__lte=timezone.now())


class RunLease(models.Model):
    """A run in progress that counts against the limits of its hook and script.

    Deleted after the run; one that its process left behind no longer counts when it has ended.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    hook_id = models.UUIDField(null=True, db_index=True)
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="+")
    ends_at = models.DateTimeField()

    objects = RunLeaseQuerySet.as_manager()

    def __str__(self) -> str:
        return f"Lease {self.pk}"
