"""The PIN is made and sent by the worker, over the channels that ``choose_pin_channels`` names."""

import uuid
from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.audit import record_about
from accounts.messages.channels import Channel, SendVia, channels_for
from accounts.messages.delivering import delivering
from accounts.messages.email import send_pin_email
from accounts.messages.quotas import claim_sms, may_send_mail, organisation_that_pays
from accounts.messages.sms import send_pin_sms
from accounts.models import AuditReason, AuthEventKind, PinChallenge, PinCode, PinFailures, User
from accounts.models.pin_failures import named_devices_bucket, strangers_bucket
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import is_first
from core.database.ids import first_id_at
from core.errors import DeliveryError
from core.http.origin import NOWHERE

_SENDERS: dict[Channel, Callable[[User, str, int], None]] = {
    Channel.EMAIL: send_pin_email,
    Channel.SMS: send_pin_sms,
}


def choose_pin_channels(email: str, send_via: SendVia, asked_at: datetime) -> tuple[Channel, ...]:
    """The channels to send the code over; each is then delivered by itself.

    Counts the messages against their limits, once however often a delivery is retried. An address
    without an account gets one channel, over which nothing is sent. Raises ``DeliveryError`` for
    a request that is older than ``PIN_LIFETIME``.
    """
    user = User.objects.find_active_by_email(email)
    _refuse_old_request(user, asked_at)
    if user is None:
        return (Channel.EMAIL,)
    return _within_quota(user, channels_for(user, send_via))


def _within_quota(user: User, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
    """The channels that quotas leave: e-mail replaces SMS, and may itself be used up."""
    organisation_id = organisation_that_pays(user)
    if Channel.SMS in channels and claim_sms(user.phone, organisation_id) is not None:
        record_about(AuthEventKind.RATE_LIMITED, NOWHERE, user, reason=AuditReason.SMS_LIMIT)
        channels = (Channel.EMAIL,)
    if Channel.EMAIL in channels and not may_send_mail(organisation_id):
        if is_first(windows.MESSAGES_REFUSED_ON_RECORD, "mail-of-organisation", str(user.pk)):
            record_about(AuthEventKind.RATE_LIMITED, NOWHERE, user, reason=AuditReason.MAIL_LIMIT)
        channels = tuple(channel for channel in channels if channel is not Channel.EMAIL)
    return channels


def send_pin(
    email: str, channel: Channel, asked_at: datetime, device: uuid.UUID | None = None
) -> None:
    """Sends the code that was requested for the canonical address at ``asked_at``.

    ``device`` is the one that asked, if it named itself.

    The first delivery makes the code; the other channel and every retry send the same one. It is
    committed before it is sent, so that it works as soon as it is read. Nothing is sent if the
    code has been used meanwhile, or if no active user has the address.

    Raises ``TryAgainError`` if a retry may help, and ``DeliveryError`` if not or if the request is
    older than ``PIN_LIFETIME``.
    """
    user = User.objects.find_active_by_email(email)
    _refuse_old_request(user, asked_at)
    pin = code_to_send(email, user, asked_at, device)
    if user is None or pin is None:
        return
    try:
        _deliver(user, pin, channel, give_up_at=asked_at + settings.PIN_LIFETIME)
    except DeliveryError as error:
        record_about(AuthEventKind.PIN_NOT_SENT, NOWHERE, user, reason=str(error)[:60])
        raise
    record_about(AuthEventKind.PIN_SENT, NOWHERE, user, reason=channel)


def _refuse_old_request(user: User | None, asked_at: datetime) -> None:
    """Raises ``DeliveryError`` for an old request: a late code would look like somebody else's."""
    if timezone.now() < asked_at + settings.PIN_LIFETIME:
        return
    reason = AuditReason.REQUESTED_TOO_LONG_AGO
    if user is not None:
        record_about(AuthEventKind.PIN_NOT_SENT, NOWHERE, user, reason=reason)
    raise DeliveryError(reason)


@transaction.atomic
def code_to_send(
    email: str, user: User | None, asked_at: datetime, device: uuid.UUID | None = None
) -> str | None:
    """The PIN for the request made at ``asked_at``: every call for one request returns the same.

    Each call makes it valid for a whole ``PIN_LIFETIME``. ``None`` if it has been used or
    cancelled meanwhile.
    """
    _lock(email)
    code = PinCode.objects.newest_since(email, device, first_id_at(asked_at))
    if code is None:
        return _make_code(email, user, device)
    challenge = code.challenge
    if challenge.ended_at is not None:
        return None
    is_retired = code.pepper_version not in settings.PEPPERS
    if challenge.user != user or challenge.is_spent or is_retired:
        return _make_code(email, user, device)
    code.expires_at = challenge.expires_at = timezone.now() + settings.PIN_LIFETIME
    code.save(update_fields=["expires_at"])
    challenge.save(update_fields=["expires_at"])
    return credentials.derive_pin(code.pk, code.pepper_version)


def _lock(email: str) -> None:
    """Locks the address's row, so that two workers never open two challenges at once for it."""
    bucket = strangers_bucket(email)
    PinFailures.objects.get_or_create(bucket=bucket.name, defaults={"email": email})
    PinFailures.objects.lock(bucket)


def _make_code(email: str, user: User | None, device: uuid.UUID | None) -> str:
    """Adds a code to the open challenge of the device, or to a new one; returns the PIN.

    A challenge in which a device has used its tries up stays open for the others.
    """
    now = timezone.now()
    expires_at = now + settings.PIN_LIFETIME
    if device is not None:
        bucket = named_devices_bucket(email).name
        PinFailures.objects.get_or_create(bucket=bucket, defaults={"email": email})
    over = ~Q(user=user) | Q(expires_at__lte=now)
    PinChallenge.objects.open_of(email).filter(over).update(ended_at=now)
    challenge = PinChallenge.objects.open_for(email, device)
    if challenge is None or challenge.is_spent:
        challenge = PinChallenge.objects.create(
            email=email, user=user, device=device, expires_at=expires_at
        )
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


def _deliver(user: User, pin: str, channel: Channel, give_up_at: datetime) -> None:
    """Sends the PIN. Raises ``TryAgainError`` or ``DeliveryError``, without the code."""
    minutes = int(settings.PIN_LIFETIME.total_seconds() // 60)
    with delivering(f"PIN for user {user.pk}", channel, give_up_at=give_up_at):
        _SENDERS[channel](user, pin, minutes)
