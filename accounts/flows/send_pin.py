"""Sending a PIN, in the worker: over which channels, the code's making, and its delivery."""

from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.audit import record_about
from accounts.messages.channels import Channel, SendVia, channels_for
from accounts.messages.delivering import delivering
from accounts.messages.email import send_pin_email
from accounts.messages.quotas import claim_sms, may_send_mail, organisation_that_pays
from accounts.messages.sms import send_pin_sms
from accounts.models import AuthEventKind, PinChallenge, PinCode, PinFailures, User
from accounts.models.pin_failures import strangers_bucket
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import is_first
from core.database.ids import first_id_at
from core.errors import DeliveryError
from core.http.origin import NOWHERE


def choose_pin_channels(email: str, send_via: SendVia, asked_at: datetime) -> tuple[Channel, ...]:
    """The channels that the code goes over, each a delivery of its own from here on.

    Here messages are counted, once however often their delivery is tried. Nobody's address gets one
    channel, over which nothing will be sent. Raises ``DeliveryError`` for an old request.
    """
    user = User.objects.find_active_by_email(email)
    refuse_what_is_late(user, asked_at)
    if user is None:
        return (Channel.EMAIL,)
    return _within_quota(user, channels_for(user, send_via))


def _within_quota(user: User, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
    """Without SMS where none may be sent any more: an e-mail takes its place. None at all where
    the organisation's mails of the day are used up.
    """
    organisation_id = organisation_that_pays(user)
    if Channel.SMS in channels and claim_sms(user.phone, organisation_id) is not None:
        record_about(AuthEventKind.RATE_LIMITED, NOWHERE, user, reason="sms")
        channels = (Channel.EMAIL,)
    if Channel.EMAIL in channels and not may_send_mail(organisation_id):
        if is_first(windows.MESSAGES_REFUSED_ON_RECORD, "mail-of-organisation", str(user.pk)):
            record_about(AuthEventKind.RATE_LIMITED, NOWHERE, user, reason="mails")
        channels = tuple(channel for channel in channels if channel is not Channel.EMAIL)
    return channels


def send_pin(email: str, channel: Channel, asked_at: datetime) -> None:
    """Sends the code that the canonical address was asked a code for at that time.

    The first delivery makes it; the other channel's, and whatever is tried again, send the same
    one. It is committed before it is sent, so that it works as soon as it is read, and is valid
    for ``PIN_LIFETIME`` from then on. Where it has been used meanwhile nothing is sent, and the
    code of an address that nobody active has is sent to nobody.

    Raises ``TryAgainError`` when that may help, ``DeliveryError`` when it will not, and when it
    was asked for longer ago than a code lives.
    """
    user = User.objects.find_active_by_email(email)
    refuse_what_is_late(user, asked_at)
    pin = code_to_send(email, user, asked_at)
    if user is None or pin is None:
        return
    try:
        deliver(user, pin, channel, give_up_at=asked_at + settings.PIN_LIFETIME)
    except DeliveryError as error:
        record_about(AuthEventKind.PIN_NOT_SENT, NOWHERE, user, reason=str(error)[:60])
        raise
    record_about(AuthEventKind.PIN_SENT, NOWHERE, user, reason=channel)


def refuse_what_is_late(user: User | None, asked_at: datetime) -> None:
    """Nobody waits for a code of so long ago: who gets it now would wonder who asked for it."""
    if timezone.now() < asked_at + settings.PIN_LIFETIME:
        return
    if user is not None:
        record_about(AuthEventKind.PIN_NOT_SENT, NOWHERE, user, reason="asked for too long ago")
    raise DeliveryError("asked for too long ago")


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


_SENDERS: dict[Channel, Callable[[User, str, int], None]] = {
    Channel.EMAIL: send_pin_email,
    Channel.SMS: send_pin_sms,
}


def deliver(user: User, pin: str, channel: Channel, give_up_at: datetime) -> None:
    """Sends the PIN. Raises ``TryAgainError`` or ``DeliveryError``, without the code."""
    minutes = int(settings.PIN_LIFETIME.total_seconds() // 60)
    with delivering(f"PIN for user {user.pk}", channel, give_up_at=give_up_at):
        _SENDERS[channel](user, pin, minutes)
