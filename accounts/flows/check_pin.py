"""Checking a PIN, and exchanging it for a token of the device on which it was entered."""

import re
import uuid
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.addresses import canonical_email
from accounts.audit import Subject, record, record_about_address
from accounts.flows.notices import send_new_device_notice
from accounts.metrics import PIN_CHECKS
from accounts.models import (
    AuditReason,
    AuthEventKind,
    DeviceToken,
    PinChallenge,
    PinCode,
    PinFailures,
    PinTries,
    User,
)
from accounts.models.pin_failures import (
    Bucket,
    known_devices_bucket,
    named_devices_bucket,
    strangers_bucket,
)
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.http.origin import Origin, network_of

_SEPARATORS = re.compile(r"[\s-]+")
_PIN = re.compile(rf"[0-9]{{{credentials.PIN_LENGTH}}}")


class IssuedDeviceToken(NamedTuple):
    device_token: DeviceToken
    token: str


def check_pin(
    *, email: str, pin: str, device: uuid.UUID, label: str, origin: Origin
) -> IssuedDeviceToken | None:
    """Returns the device's new token for a correct PIN, and ``None`` for any failure.

    Spaces and hyphens in the PIN are ignored; only 0–9 are digits. The try is counted, for the
    account and for the device, before anything is compared. Call outside a transaction, which would
    roll the count of a failure back. Raises ``RateLimitedError``.
    """
    hit([windows.PIN_CHECKS_OF_CLIENT], "pin-check", network_of(origin.client_address))
    address = canonical_email(email)
    outcome = _evaluate(address, pin, device, label)
    if isinstance(outcome, AuditReason):
        PIN_CHECKS.labels("refused").inc()
        record_about_address(AuthEventKind.PIN_REFUSED, origin, address, outcome)
        return None
    PIN_CHECKS.labels("accepted").inc()
    device_token = outcome.issued.device_token
    record(
        AuthEventKind.DEVICE_ADDED,
        origin,
        user=device_token.user,
        about=Subject.device(device_token),
        credential=device_token.pk,
    )
    if outcome.is_new_device:
        send_new_device_notice.enqueue(
            str(device_token.pk), origin.client_address, request_id=origin.request_id
        )
    return outcome.issued


class _Login(NamedTuple):
    issued: IssuedDeviceToken
    is_new_device: bool


def _evaluate(address: str, pin: str, device: uuid.UUID, label: str) -> _Login | AuditReason:
    """Returns the login, or the reason for the refusal, which only the audit log shows."""
    digits = _SEPARATORS.sub("", pin)
    if not _PIN.fullmatch(digits):
        return AuditReason.MALFORMED_PIN
    bucket, challenges = _choose(address, device)
    # Asked first: a stranger who is stopped touches no challenge.
    may_try = PinFailures.objects.claim_try(bucket)
    claimed = PinTries.objects.claim(challenges if may_try else (), device)
    if may_try and not claimed:
        PinFailures.objects.give_back(bucket)
        return AuditReason.NO_OPEN_CHALLENGE
    challenge = PinCode.objects.find_challenge(claimed, digits)
    if not may_try:
        return AuditReason.ACCOUNT_STOPPED
    if challenge is None:
        return AuditReason.WRONG_OR_EXPIRED_PIN
    is_new = not DeviceToken.objects.filter(user=challenge.user_id, device=device).exists()
    issued = _log_in(challenge, bucket, device, label)
    return AuditReason.USED_OR_INACTIVE if issued is None else _Login(issued, is_new)


def _choose(email: str, device: uuid.UUID) -> tuple[Bucket, list[PinChallenge]]:
    """The bucket that counts the device's failures, and the challenges whose codes it may try.

    A device on which the user is logged in may try every code but those that other devices asked
    for by name. Unknown devices may not try each other's: one that asked by name tries its own
    codes, and any other those that were asked for without a name.
    """
    is_known = DeviceToken.objects.is_known(email, device)
    challenges = PinChallenge.objects.with_live_codes(email, device)
    own = [challenge for challenge in challenges if challenge.device is not None]
    if is_known:
        bucket = known_devices_bucket(email, device)
        PinFailures.objects.get_or_create(bucket=bucket.name, defaults={"email": email})
        return bucket, challenges
    return (named_devices_bucket(email), own) if own else (strangers_bucket(email), challenges)


@transaction.atomic
def _log_in(
    challenge: PinChallenge, bucket: Bucket, device: uuid.UUID, label: str
) -> IssuedDeviceToken | None:
    PinFailures.objects.lock(bucket)
    user = User.objects.select_for_update().filter(pk=challenge.user_id, is_active=True).first()
    if user is None or not PinChallenge.objects.redeem(challenge, device):
        return None
    PinFailures.objects.forgive(bucket)
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
