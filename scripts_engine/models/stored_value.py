import uuid

from django.db import models
from django.utils import timezone

from accounts.models import Organisation


class StoredValueQuerySet(models.QuerySet["StoredValue"]):
    def of_organisation(self, organisation: Organisation | uuid.UUID) -> "StoredValueQuerySet":
        return self.filter(organisation=organisation)

    def live(self) -> "StoredValueQuerySet":
        """Values that have not expired."""
        return self.filter(
            models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=timezone.now())
        )

    def beginning_with(self, prefix: bytes) -> "StoredValueQuerySet":
        """Values by the first bytes of their keys: a range, which the index of the keys serves."""
        rows = self.filter(key__gte=prefix)
        # The first key behind all that begin with the prefix; no key is behind 0xFF, 0xFF, ….
        start = prefix.rstrip(b"\xff")
        return rows.filter(key__lt=start[:-1] + bytes([start[-1] + 1])) if start else rows

    def expired(self) -> "StoredValueQuerySet":
        return self.filter(expires_at__lte=timezone.now())


class StoredValue(models.Model):
    """A value that an organisation's scripts keep between runs: JSON text under a binary key."""

    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="stored_values", db_index=False
    )
    key = models.BinaryField(max_length=256)
    value = models.TextField(help_text="JSON.")
    expires_at = models.DateTimeField(null=True, db_index=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = StoredValueQuerySet.as_manager()

    class Meta:
        ordering = ["key"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "key"], name="one_value_per_key_and_organisation"
            )
        ]

    def __str__(self) -> str:
        # Without NUL, which PostgreSQL refuses in the text of the admin's history.
        return bytes(self.key).decode("utf-8", "replace").replace("\0", "\ufffd")
