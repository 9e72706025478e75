from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.models import PinChallenge, PinCode, PinFailures, User
from accounts.models.pin_failures import strangers_bucket
from core.database.ids import first_id_at


@transaction.atomic
def make_code(email: str, user: User | None) -> str:
    """A new code in the open challenge of the address, or in a new one; returns the PIN."""
    _lock(email)
    return _make_code(email, user)


@transaction.atomic
def code_to_send(email: str, user: User | None, asked_at: datetime) -> str | None:
    """The PIN for a request of that time: made at the first call, and the same at later ones.

    Its validity begins anew each time. ``None`` when it has been used or taken back meanwhile:
    then there is nothing to send any more.
    """
    _lock(email)
    code = PinCode.objects.newest_since(email, first_id_at(asked_at))
    if code is None:
        return _make_code(email, user)
    challenge = code.challenge
    if challenge.ended_at is not None:
        return None
    is_retired = code.pepper_version not in settings.PEPPERS
    if challenge.user != user or challenge.is_spent or is_retired:
        return _make_code(email, user)
    code.expires_at = challenge.expires_at = timezone.now() + settings.PIN_LIFETIME
    code.save(update_fields=["expires_at"])
    challenge.save(update_fields=["expires_at"])
    return credentials.derive_pin(code.pk, code.pepper_version)


def _lock(email: str) -> None:
    """The address's row is the lock: two workers never open two challenges for it."""
    bucket = strangers_bucket(email)
    PinFailures.objects.get_or_create(bucket=bucket, defaults={"email": email})
    PinFailures.objects.select_for_update().get(bucket=bucket)


def _make_code(email: str, user: User | None) -> str:
    now = timezone.now()
    expires_at = now + settings.PIN_LIFETIME
    challenge = PinChallenge.objects.open_for(email)
    if challenge is not None and (challenge.is_spent or challenge.user != user):
        challenge.ended_at = now
        challenge.save(update_fields=["ended_at"])
        challenge = None
    if challenge is None:
        challenge = PinChallenge.objects.create(email=email, user=user, expires_at=expires_at)
    else:
        challenge.expires_at = expires_at
        challenge.save(update_fields=["expires_at"])
    code_id = uuid7()
    pin = credentials.derive_pin(code_id, credentials.newest_pepper())
    digest = credentials.digest(credentials.pin_material(challenge.pk, pin))
    PinCode.objects.create(
        id=code_id,
        challenge=challenge,
        digest=digest.value,
        pepper_version=digest.pepper_version,
        expires_at=expires_at,
    )
    return pin
