from django.utils import timezone

from accounts.audit import record
from accounts.models import AuthEventKind, DeviceToken
from config.http.origin import NOWHERE, Origin


def revoke_device(device_token: DeviceToken, *, origin: Origin = NOWHERE) -> None:
    """Ends the device's token and, as every request re-checks it, its sessions. For good."""
    revoked = DeviceToken.objects.filter(pk=device_token.pk, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
    if revoked:
        record(
            AuthEventKind.DEVICE_REVOKED,
            origin,
            user=device_token.user,
            organisation=device_token.user.sole_organisation(),
            credential=device_token.pk,
        )
