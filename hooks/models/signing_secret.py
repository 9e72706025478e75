"""Signing secrets of hooks, and the evidence that these and call tokens are in use."""

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import Organisation
from hooks.models.hook import Hook


class SigningSecretQuerySet(models.QuerySet["SigningSecret"]):
    def of_organisation(self, organisation: Organisation) -> "SigningSecretQuerySet":
        return self.filter(hook__script__organisation=organisation)

    def existing(self) -> "SigningSecretQuerySet":
        """Secrets of hooks that were not deleted, nor was their script."""
        return self.filter(hook__deleted_at__isnull=True, hook__script__deleted_at__isnull=True)

    def live(self, now: datetime | None = None) -> "SigningSecretQuerySet":
        """Secrets whose signatures are accepted; at most two of a hook."""
        return self.filter(Q(ends_at__isnull=True) | Q(ends_at__gt=now or timezone.now()))

    def retired(self) -> "SigningSecretQuerySet":
        """Secrets that only explain why a call was refused."""
        return self.filter(ends_at__lte=timezone.now())


class SigningSecret(models.Model):
    """A secret with which a sender signs its calls of one hook.

    Its value is encrypted and never shown; it can only be replaced.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    hook = models.ForeignKey(Hook, on_delete=models.CASCADE, related_name="signing_secrets")
    ciphertext = models.BinaryField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the secret was set.")
    ends_at = models.DateTimeField(
        null=True,
        editable=False,
        db_index=True,
        help_text="When its signatures stop being accepted; null until it is replaced.",
    )

    objects = SigningSecretQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"Signing secret {str(self.pk)[:8]}…"

    @property
    def is_live(self) -> bool:
        return self.ends_at is None or self.ends_at > timezone.now()


class CredentialUse(models.Model):
    """The evidence that a hook's call token or signing secret is still in use.

    Counted for signing secrets, and for both call tokens while a rotation overlaps.
    """

    hook = models.ForeignKey(
        Hook, on_delete=models.CASCADE, related_name="credential_uses", db_index=False
    )
    credential = models.CharField(
        max_length=64, help_text="The digest of a call token, or the id of a signing secret."
    )
    last_used_at = models.DateTimeField(help_text="When it was last used.")
    last_used_from = models.GenericIPAddressField(null=True, help_text="The last caller's address.")
    count = models.PositiveBigIntegerField(help_text="How often it was used.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["hook", "credential"], name="one_use_per_credential")
        ]

    def __str__(self) -> str:
        return f"Use of a credential of {self.hook_id}"
