import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import Organisation
from scripts_engine.models.hook import Hook


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
