import uuid

from django.db import models
from django.utils import timezone

from hooks.models.hook import Hook


class IdempotencyKeyQuerySet(models.QuerySet["IdempotencyKey"]):
    def of_hook(self, hook_id: uuid.UUID) -> "IdempotencyKeyQuerySet":
        return self.filter(hook=hook_id)

    def expired(self) -> "IdempotencyKeyQuerySet":
        """Those of which neither a reply is repeated any more, nor a run may be in progress."""
        now = timezone.now()
        return self.filter(expires_at__lte=now, lease_ends_at__lte=now)


class IdempotencyKey(models.Model):
    """A delivery of a hook that was accepted, to recognise its duplicates.

    Its run, if there is one, says how it ended; see ``hooks.flows.idempotency``.
    """

    digest = models.CharField(
        max_length=64,
        primary_key=True,
        help_text="SHA-256 of the hook's id and the event id or the body.",
    )
    hook = models.ForeignKey(Hook, on_delete=models.CASCADE, related_name="idempotency_keys")
    # Not a foreign key: the run is recorded when it ends, and may be deleted before the key.
    run_id = models.UUIDField(db_index=True, help_text="The run of the first delivery.")
    runs = models.PositiveIntegerField(
        default=1, help_text="Runs started for it: more than 1 if the ones before failed."
    )
    lease_ends_at = models.DateTimeField(
        help_text="Without a recorded run, the delivery counts as lost from then on."
    )
    expires_at = models.DateTimeField(db_index=True)
    duplicates = models.PositiveIntegerField(
        default=0, help_text="Deliveries that got this run's reply."
    )
    is_reply_altered = models.BooleanField(
        default=False, help_text="Recording hid a secret in the reply, or truncated it."
    )
    ended_with = models.PositiveSmallIntegerField(
        null=True, help_text="The status of the response, once its run is deleted."
    )
    accepted_status = models.PositiveSmallIntegerField(
        null=True, help_text="The status of the reply, if the delivery was queued."
    )
    # At most two deliveries wait for the reply. Their places end by time, so none can leak.
    first_wait_ends_at = models.DateTimeField()
    second_wait_ends_at = models.DateTimeField()

    objects = IdempotencyKeyQuerySet.as_manager()

    def __str__(self) -> str:
        return f"Delivery of run {self.run_id}"
