"""The worker's half of a PIN login's first step."""

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.audit import record
from accounts.models import AuthEventKind, PinChallenge, PinCode, PinFailures, User
from accounts.models.pin_failures import strangers_bucket
from accounts.pin_delivery.channels import Channel, SendVia, channels_for
from accounts.pin_delivery.delivery import DeliveryError, deliver
from accounts.pin_delivery.sms_quota import may_send_sms
from config.http.origin import NOWHERE


def send_pin(email: str, send_via: SendVia) -> None:
    """Makes a code for the canonical address and sends it over the channels that the user has.

    The code counts from the moment it is made, and is committed before it is sent, so that it
    works as soon as it is read. An address that nobody active has gets a code that is sent to
    nobody. Raises ``DeliveryError`` when a channel fails.
    """
    user = User.objects.find_active_by_email(email)
    pin = make_code(email, user)
    if user is None:
        return
    channels = _within_quota(user, channels_for(user, send_via))
    try:
        deliver(user, pin, channels)
    except DeliveryError as error:
        _record(AuthEventKind.PIN_NOT_SENT, user, str(error))
        raise
    _record(AuthEventKind.PIN_SENT, user, ", ".join(channels))


def _within_quota(user: User, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
    """Without SMS where none may be sent any more; an e-mail takes its place."""
    if Channel.SMS not in channels or may_send_sms(user.phone):
        return channels
    _record(AuthEventKind.RATE_LIMITED, user, "sms")
    return (Channel.EMAIL,)


def _record(kind: AuthEventKind, user: User, reason: str) -> None:
    organisation = user.sole_organisation()
    record(kind, NOWHERE, user=user, organisation=organisation, reason=reason[:60])


@transaction.atomic
def make_code(email: str, user: User | None) -> str:
    """A new code in the open challenge of the address, or in a new one; returns the PIN."""
    bucket = strangers_bucket(email)
    PinFailures.objects.get_or_create(bucket=bucket, defaults={"email": email})
    # The address's row is the lock: two workers never open two challenges for it.
    PinFailures.objects.select_for_update().get(bucket=bucket)
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
