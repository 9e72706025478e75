import uuid

from django.db import models

from accounts.models.organisation import Organisation
from accounts.models.user import User


class DeviceTokenQuerySet(models.QuerySet["DeviceToken"]):
    def of_organisation(self, organisation: Organisation) -> "DeviceTokenQuerySet":
        return self.filter(revoked_at__isnull=True, user__memberships__organisation=organisation)

    def of_own_users(self, organisation: Organisation) -> "DeviceTokenQuerySet":
        """Devices of the users whose home is the organisation."""
        return self.filter(user__in=User.objects.belonging_to(organisation.pk))

    def is_known(self, email: str, device: uuid.UUID) -> bool:
        """Whether the user with the canonical address is logged in on the device."""
        return self.filter(user__email=email, device=device, revoked_at__isnull=True).exists()


class DeviceToken(models.Model):
    """A person's long-lived credential, bound to the device that a PIN was entered on.

    The primary key is the public ``tokenId``. A revoked token stays as the device's history.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="device_tokens")
    device = models.UUIDField(help_text="The UUID that the device generated for itself.")
    label = models.CharField(max_length=64, blank=True, help_text="The name given by the device.")
    digest = models.CharField(max_length=64, editable=False)
    pepper_version = models.PositiveIntegerField(editable=False)
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the user logged in on it.")
    last_used_at = models.DateTimeField(
        null=True, editable=False, help_text="When the device last opened a session."
    )
    revoked_at = models.DateTimeField(null=True, editable=False)

    objects = DeviceTokenQuerySet.as_manager()

    class Meta:
        verbose_name = "device"
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "device"],
                condition=models.Q(revoked_at__isnull=True),
                name="one_live_token_per_device",
            )
        ]

    def __str__(self) -> str:
        return f"{self.label or 'Device'} of {self.user}"
