from django.utils import timezone

from accounts.models import DeviceToken


def revoke_device(device_token: DeviceToken) -> None:
    """Ends the device's token and, as every request re-checks it, its sessions. For good."""
    DeviceToken.objects.filter(pk=device_token.pk, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
