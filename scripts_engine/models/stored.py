"""What an organisation keeps beside its scripts: secrets, stored values, and their size."""

import uuid

from django.core.validators import RegexValidator
from django.db import models
from django.utils import timezone

from accounts.models import Organisation, Revised


class SecretQuerySet(models.QuerySet["Secret"]):
    def of_organisation(self, organisation: Organisation | uuid.UUID) -> "SecretQuerySet":
        return self.filter(organisation=organisation)


class Secret(Revised):
    """A secret that an organisation's scripts read by name.

    Its value is encrypted and never shown; it can only be replaced.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="secrets", db_index=False
    )
    name = models.CharField(
        max_length=100,
        validators=[
            RegexValidator(
                r"\A[A-Za-z_][A-Za-z0-9_.-]*\Z",
                "Use letters, digits, _, - and . and begin with a letter.",
            )
        ],
        help_text='The name in scripts: secrets.get("SHOP_KEY").',
    )
    ciphertext = models.BinaryField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the secret was first set.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When the secret was last set.")

    objects = SecretQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="one_secret_per_name_and_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name


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


class StoredValue(Revised):
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


class RunStorage(models.Model):
    """What an organisation stores, limited by ``Organisation.run_bytes_limit``.

    Each process adds its share of the payloads of runs every few seconds, and upkeep recounts,
    because a killed process may not have added its last MiB. What defines scripts and hooks is
    counted exactly, and payloads make room for it.
    """

    organisation = models.OneToOneField(
        Organisation, primary_key=True, on_delete=models.CASCADE, related_name="run_storage"
    )
    bytes_used = models.BigIntegerField(default=0, help_text="Payloads, replies, headers and logs.")
    definition_bytes = models.BigIntegerField(
        default=0, db_default=0, help_text="Versions of scripts, and hooks."
    )
    removed_before = models.DateTimeField(
        null=True, help_text="Runs that started earlier have lost their payload to the quota."
    )

    def __str__(self) -> str:
        return f"Run storage of {self.organisation_id}"

    @property
    def total_bytes(self) -> int:
        return max(0, self.bytes_used) + self.definition_bytes

    @property
    def payload_bytes_limit(self) -> int | None:
        """What the quota leaves for the payloads of runs; ``None`` for no quota."""
        limit = self.organisation.run_bytes_limit
        return None if limit is None else max(0, limit - self.definition_bytes)


def bytes_used_by(organisation: Organisation) -> int:
    """The size of its runs' payloads, scripts and hooks; a few seconds old."""
    storage = RunStorage.objects.filter(pk=organisation.pk).first()
    return 0 if storage is None else storage.total_bytes
