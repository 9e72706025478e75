import hashlib
import uuid
from datetime import timedelta
from typing import NamedTuple

from django.db import models
from django.db.models import OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.models import Organisation
from scripts_engine.models.hook import Hook
from scripts_engine.models.run import Run, RunQuerySet
from scripts_engine.models.schedule import Schedule
from scripts_engine.models.script import Script

# A key's reservation that ends later than any new one could is from before the clock was set back.
MAX_RESERVATION = timedelta(minutes=2)

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
    hook = models.ForeignKey(
        Hook, null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
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
        is_valid = Q(reserved_by=None) | Q(expires_at__lte=now + MAX_RESERVATION)
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
