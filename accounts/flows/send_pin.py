"""The worker's half of a PIN login's first step."""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.models import PinChallenge, PinCode, PinFailures, User
from accounts.pin_delivery.channels import SendVia, channels_for
from accounts.pin_delivery.delivery import deliver


def send_pin(email: str, send_via: SendVia) -> None:
    """Makes a code for the canonical address and sends it over the channels that the user has.

    The code counts from the moment it is made, and is committed before it is sent, so that it
    works as soon as it is read. An address that nobody active has gets a code that is sent to
    nobody. Raises ``DeliveryError`` when a channel fails.
    """
    user = User.objects.find_active_by_email(email)
    pin = make_code(email, user)
    if user is not None:
        deliver(user, pin, channels_for(user, send_via))


@transaction.atomic
def make_code(email: str, user: User | None) -> str:
    """A new code in the open challenge of the address, or in a new one; returns the PIN."""
    PinFailures.objects.get_or_create(email=email)
    # The address's row is the lock: two workers never open two challenges for it.
    PinFailures.objects.select_for_update().get(email=email)
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
    pin = credentials.generate_pin()
    digest = credentials.digest(credentials.pin_material(challenge.pk, pin))
    PinCode.objects.create(
        challenge=challenge,
        digest=digest.value,
        pepper_version=digest.pepper_version,
        expires_at=expires_at,
    )
    return pin
