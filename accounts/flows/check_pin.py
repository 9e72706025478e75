import re
import uuid
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.email_address import canonical_email
from accounts.models import DeviceToken, PinChallenge, PinFailures, User

_SEPARATORS = re.compile(r"[\s-]+")
_PIN = re.compile(rf"[0-9]{{{credentials.PIN_LENGTH}}}")


class IssuedDeviceToken(NamedTuple):
    device_token: DeviceToken
    token: str


def check_pin(*, email: str, pin: str, device: uuid.UUID, label: str) -> IssuedDeviceToken | None:
    """The device's new token for a right PIN; ``None`` for every failure, whatever its reason.

    Spaces and hyphens in the PIN are ignored; other digits than 0–9 are not digits. A try is
    counted, for the challenge and for the account, in statements of their own before anything is
    compared. Call outside a transaction, or a failure's count would be rolled back with it.
    """
    address = canonical_email(email)
    digits = _SEPARATORS.sub("", pin)
    if not _PIN.fullmatch(digits):
        return None
    challenge = PinChallenge.objects.open_for(address)
    may_try = PinChallenge.objects.claim_try(challenge)
    may_try = PinFailures.objects.claim_try(address) and may_try
    if challenge is None or not may_try or not challenge.has_code(digits):
        return None
    return _log_in(challenge, device, label)


@transaction.atomic
def _log_in(challenge: PinChallenge, device: uuid.UUID, label: str) -> IssuedDeviceToken | None:
    user = User.objects.select_for_update().filter(pk=challenge.user_id, is_active=True).first()
    if user is None or not PinChallenge.objects.redeem(challenge):
        return None
    PinFailures.objects.forgive(challenge.email)
    DeviceToken.objects.filter(user=user, device=device, revoked_at__isnull=True).update(
        revoked_at=timezone.now()
    )
    token = credentials.generate_secret(credentials.SecretKind.DEVICE_TOKEN)
    digest = credentials.digest(token)
    device_token = DeviceToken.objects.create(
        user=user,
        device=device,
        label=label,
        digest=digest.value,
        pepper_version=digest.pepper_version,
    )
    return IssuedDeviceToken(device_token, token)
