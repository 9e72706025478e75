from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from accounts.audit import Ended, Subject, record_ends
from accounts.models import AuthEventKind, DeviceToken, User
from core.http.origin import NOWHERE, Origin


def revoke_device(device_token: DeviceToken, *, origin: Origin = NOWHERE) -> None:
    """Revokes the device's token for good, and with it its sessions."""
    revoke_devices([device_token], origin=origin)


def revoke_devices(
    device_tokens: Iterable[DeviceToken], *, origin: Origin = NOWHERE, by: User | None = None
) -> list[DeviceToken]:
    """Revokes several devices in a fixed number of queries; returns those not revoked before.

    The audit log names the administrator ``by``, or else the owner.
    """
    asked = [device_token.pk for device_token in device_tokens]
    with transaction.atomic():
        live = list(
            DeviceToken.objects.select_for_update(of=("self",))
            .select_related("user")
            .filter(pk__in=asked, revoked_at__isnull=True)
            .order_by("pk")
        )
        revoked = DeviceToken.objects.filter(pk__in=[device_token.pk for device_token in live])
        revoked.update(revoked_at=timezone.now())
    record_ends(
        AuthEventKind.DEVICE_REVOKED,
        origin,
        [
            Ended(
                Subject.device(device_token),
                device_token.user.tenant_id,
                device_token.pk,
                owner=device_token.user,
                by=by,
            )
            for device_token in live
        ],
    )
    return live
