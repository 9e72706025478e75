from django.utils import timezone

from accounts.audit import record
from accounts.models import AuthEventKind, DeviceToken, User
from config.http.origin import NOWHERE, Origin


def revoke_device(
    device_token: DeviceToken, *, origin: Origin = NOWHERE, by: User | None = None
) -> None:
    """Ends the device's token and, as every request re-checks it, its sessions. For good.

    The audit names who did it: its owner, or the administrator ``by``.
    """
    revoked = DeviceToken.objects.filter(pk=device_token.pk, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
    if revoked:
        record(
            AuthEventKind.DEVICE_REVOKED,
            origin,
            user=by or device_token.user,
            email=device_token.user.email,
            organisation=device_token.user.sole_organisation(),
            credential=device_token.pk,
        )
