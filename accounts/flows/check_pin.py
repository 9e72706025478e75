"""Checking a PIN, and exchanging it for a token of the device on which it was entered."""

import re
import uuid
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts import credentials
from accounts.audit import Subject, record_about, record_about_address
from accounts.email_address import canonical_email
from accounts.models import (
    AuditReason,
    AuthEventKind,
    DeviceToken,
    PinChallenge,
    PinFailures,
    User,
)
from accounts.models.pin_failures import known_devices_bucket, strangers_bucket
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from accounts.tasks import send_new_device_notice
from core.http.client_address import network_of
from core.http.origin import Origin
from core.metrics.catalogue import PIN_CHECKS

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
    challenge and for the account, before anything is compared. Call outside a transaction, which
    would roll the count of a failure back. Raises ``RateLimitedError``.
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
    record_about(
        AuthEventKind.DEVICE_ADDED,
        origin,
        device_token.user,
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
    challenge = PinChallenge.objects.open_for(address)
    bucket = _bucket_of(address, device)
    has_try = PinChallenge.objects.claim_try(challenge)
    may_try = PinFailures.objects.claim_try(bucket)
    if challenge is None or not has_try:
        return AuditReason.NO_OPEN_CHALLENGE
    if not may_try:
        return AuditReason.ACCOUNT_STOPPED
    if not challenge.has_code(digits):
        return AuditReason.WRONG_OR_EXPIRED_PIN
    is_new = not DeviceToken.objects.filter(user=challenge.user_id, device=device).exists()
    issued = _log_in(challenge, bucket, device, label)
    return AuditReason.USED_OR_INACTIVE if issued is None else _Login(issued, is_new)


def _bucket_of(email: str, device: uuid.UUID) -> str:
    """The bucket that counts the failures.

    A device on which the user is logged in has a bucket of its own; all others share one.
    """
    known = DeviceToken.objects.filter(
        user__email=email, device=device, revoked_at__isnull=True
    ).exists()
    if not known:
        return strangers_bucket(email)
    bucket = known_devices_bucket(email, device)
    PinFailures.objects.get_or_create(bucket=bucket, defaults={"email": email})
    return bucket


@transaction.atomic
def _log_in(
    challenge: PinChallenge, bucket: str, device: uuid.UUID, label: str
) -> IssuedDeviceToken | None:
    user = User.objects.select_for_update().filter(pk=challenge.user_id, is_active=True).first()
    if user is None or not PinChallenge.objects.redeem(challenge):
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
