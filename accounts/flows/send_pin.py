"""The PIN of a login: its request is limited and queued, and it is made and sent by tasks."""

import uuid
from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django_tasks import TaskContext, task
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.addresses import canonical_email, validate_typed_email
from accounts.audit import record
from accounts.messages.channels import Channel, SendVia, channels_asked_for, channels_for
from accounts.messages.delivering import delivering
from accounts.messages.email import send_pin_email
from accounts.messages.quotas import claim_sms, may_mail_user, organisation_that_pays
from accounts.messages.sms import send_pin_sms
from accounts.models import (
    AuditReason,
    AuthEventKind,
    DeviceToken,
    PinChallenge,
    PinCode,
    PinFailures,
    User,
)
from accounts.models.pin_failures import named_devices_bucket, strangers_bucket
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.database.ids import first_id_at, parse_uuid
from core.errors import DeliveryError
from core.http.origin import NOWHERE, Origin, network_of

_SENDERS: dict[Channel, Callable[[User, str, int], None]] = {
    Channel.EMAIL: send_pin_email,
    Channel.SMS: send_pin_sms,
}


def request_pin(
    email: str, send_via: SendVia, origin: Origin, *, device: uuid.UUID | None = None
) -> None:
    """Queues a code for the address, whether it has an account or not.

    A device that names itself gets a code that it alone can use. The tasks look the user up, so
    that known and unknown addresses take the same time here. Raises ``ValidationError`` for an
    invalid e-mail address, and ``RateLimitedError``.
    """
    validate_typed_email(email)
    address = canonical_email(email)
    hit([windows.PIN_SENDS_OF_CLIENT], "pin-send", network_of(origin.client_address))
    count_send_to(address, device)
    asked_at = timezone.now().isoformat()
    for channel in channels_asked_for(send_via):
        deliver_pin.using(queue_name=channel).enqueue(
            address,
            channel,
            send_via,
            asked_at,
            device="" if device is None else str(device),
            request_id=origin.request_id,
        )
    record(AuthEventKind.PIN_REQUESTED, origin, email=address)


def count_send_to(address: str, device: uuid.UUID | None = None) -> None:
    """Counts one code sent to the canonical address. Raises ``RateLimitedError``.

    A device on which the user is logged in has windows of its own: strangers cannot use up its
    codes.
    """
    if device is not None and DeviceToken.objects.is_known(address, device):
        hit(windows.PIN_SENDS_OF_ADDRESS, "pin-send-to-device", address, str(device))
    else:
        hit(windows.PIN_SENDS_OF_ADDRESS, "pin-send-to", address)


@task(takes_context=True)
def deliver_pin(
    context: TaskContext,
    email: str,
    channel: str,
    send_via: str,
    asked_at: str,
    *,
    device: str = "",
    request_id: str = "",
) -> None:
    """Sends the code that was requested over ``send_via`` for the address over this channel.

    Where no SMS may be sent, an e-mail takes its place, with a task of its own.
    """
    moment = datetime.fromisoformat(asked_at)
    chosen = choose_channel(
        email, Channel(channel), SendVia(send_via), moment, is_counted=context.attempt == 1
    )
    if chosen == channel:
        send_pin(email, chosen, moment, parse_uuid(device))
    elif chosen is not None:
        deliver_pin.using(queue_name=chosen).enqueue(
            email, chosen, SendVia.EMAIL, asked_at, device=device, request_id=request_id
        )


def choose_channel(
    email: str, channel: Channel, send_via: SendVia, asked_at: datetime, *, is_counted: bool
) -> Channel | None:
    """The channel, e-mail if it takes the place of SMS, or ``None`` to send nothing.

    ``is_counted``: the message counts against its limits, as it does at its first attempt. Raises
    ``DeliveryError`` for a request that is older than ``PIN_LIFETIME``.
    """
    user = User.objects.find_active_by_email(email)
    _refuse_old_request(user, asked_at)
    if user is None:
        # Whatever the channel, a code is made and nothing is sent.
        return channel
    if channel in channels_for(user, send_via) and not (
        is_counted and _is_over_quota(user, channel)
    ):
        return channel
    return Channel.EMAIL if send_via is SendVia.SMS else None


def _is_over_quota(user: User, channel: Channel) -> bool:
    if channel is Channel.EMAIL:
        return not may_mail_user(user)
    if claim_sms(user.phone, organisation_that_pays(user)) is None:
        return False
    record(AuthEventKind.RATE_LIMITED, NOWHERE, user=user, reason=AuditReason.SMS_LIMIT)
    return True


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
        record(AuthEventKind.PIN_NOT_SENT, NOWHERE, user=user, reason=str(error)[:60])
        raise
    record(AuthEventKind.PIN_SENT, NOWHERE, user=user, reason=channel)


def _refuse_old_request(user: User | None, asked_at: datetime) -> None:
    """Raises ``DeliveryError`` for an old request: a late code would look like somebody else's."""
    if timezone.now() < asked_at + settings.PIN_LIFETIME:
        return
    reason = AuditReason.REQUESTED_TOO_LONG_AGO
    if user is not None:
        record(AuthEventKind.PIN_NOT_SENT, NOWHERE, user=user, reason=reason)
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
