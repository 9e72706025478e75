"""The second factor of staff: an authenticator app (TOTP), and recovery codes."""

import re
import secrets
from datetime import timedelta
from math import ceil

from django.db import transaction
from django.utils import timezone
from django_otp.models import Device
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import credentials
from accounts.models import User
from core.errors import RateLimitedError

CODES = 10
# Without letters and digits that look alike: ten of them carry 49 bits.
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_CODE_LENGTH = 10
# The length of django-otp's column: 64 bits of the digest.
_STORED_LENGTH = 16
# More than clocks of nodes under NTP ever differ.
_MAX_CLOCK_DIFFERENCE = timedelta(minutes=1)
_TOTP_CODE = re.compile(r"[0-9]{6}")


def has_second_factor(user: User) -> bool:
    return TOTPDevice.objects.filter(user=user, confirmed=True).exists()


def find_pending_enrolment(user: User) -> TOTPDevice | None:
    """The app that was shown a secret and is not yet confirmed."""
    return TOTPDevice.objects.filter(user=user, confirmed=False).first()


@transaction.atomic
def begin_enrolment(user: User) -> TOTPDevice:
    """Creates an app with a new secret; it has no effect until it is confirmed."""
    TOTPDevice.objects.filter(user=user, confirmed=False).delete()
    return TOTPDevice.objects.create(user=user, name="Authenticator app", confirmed=False)


def confirm_enrolment(user: User, typed: str) -> tuple[TOTPDevice, list[str]] | None:
    """Confirms the app and returns it with recovery codes; ``None`` for a wrong code.

    Raises ``RateLimitedError`` after too many wrong codes.
    """
    with transaction.atomic():
        pending = TOTPDevice.objects.select_for_update().filter(user=user, confirmed=False).first()
        if pending is None or not accepts(pending, normalised(typed)):
            return None
        TOTPDevice.objects.filter(user=user, confirmed=True).delete()
        pending.confirmed = True
        pending.save(update_fields=["confirmed"])
        return pending, replace_recovery_codes(user)


@transaction.atomic
def remove_second_factor(user: User) -> None:
    """Removes app and recovery codes; the password alone then suffices."""
    TOTPDevice.objects.filter(user=user).delete()
    StaticDevice.objects.filter(user=user).delete()


@transaction.atomic
def reset_second_factor(user: User) -> None:
    """Removes a lost second factor, and ends every login and session of the user.

    A session that the lost factor verified must not stay open, nor enrol the next one.
    """
    remove_second_factor(user)
    User.objects.filter(pk=user.pk).update(sessions_valid_after=timezone.now())


def verify_code(user: User, typed: str) -> TOTPDevice | None:
    """The user's app if the code is valid, from the app (six digits) or a recovery code.

    A code works once. Raises ``RateLimitedError`` after too many wrong codes.
    """
    code = normalised(typed)
    with transaction.atomic():
        app = TOTPDevice.objects.select_for_update().filter(user=user, confirmed=True).first()
        if app is None:
            return None
        if _TOTP_CODE.fullmatch(code):
            return app if accepts(app, code) else None
        recovery = StaticDevice.objects.select_for_update().filter(user=user).first()
        if recovery is None:
            return None
        return app if accepts(recovery, token_of(recovery, code)) else None


def accepts(device: Device, token: str) -> bool:
    """Whether the token is valid. Call inside a transaction, with the device's row locked."""
    _forget_future_times(device)
    is_allowed, why = device.verify_is_allowed()
    if not is_allowed:
        wait = why["locked_until"] - timezone.now()
        raise RateLimitedError(max(1, ceil(wait.total_seconds())))
    return bool(device.verify_token(token))


def _forget_future_times(device: Device) -> None:
    """Drops times from before the clock was set back; codes of this moment count as used.

    Otherwise a failure would block the user, and a success would make every code look used, until
    the clock has caught up.
    """
    now, failed_at = timezone.now(), device.throttling_failure_timestamp
    if failed_at is not None and failed_at > now + _MAX_CLOCK_DIFFERENCE:
        device.throttling_failure_timestamp = None
    if isinstance(device, TOTPDevice):
        step = int(now.timestamp() - device.t0) // device.step
        device.last_t = min(device.last_t, step + device.drift + device.tolerance)


def normalised(code: str) -> str:
    """The code without the spaces and hyphens between groups."""
    return re.sub(r"[\s-]", "", code).lower()


def replace_recovery_codes(user: User) -> list[str]:
    """Replaces the recovery codes; only digests of the new ones are stored."""
    StaticDevice.objects.filter(user=user).delete()
    device = StaticDevice.objects.create(user=user, name="Recovery codes")
    codes = [_random_code() for _ in range(CODES)]
    StaticToken.objects.bulk_create(
        StaticToken(device=device, token=credentials.digest(code).value[:_STORED_LENGTH])
        for code in codes
    )
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def _random_code() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))


def find_recovery_codes_id(user: User) -> int | None:
    """The id of the user's set of recovery codes; each new set has another id."""
    found: int | None = StaticDevice.objects.filter(user=user).values_list("pk", flat=True).first()
    return found


def count_recovery_codes(user: User) -> int:
    return StaticToken.objects.filter(device__user=user).count()


def token_of(device: StaticDevice, code: str) -> str:
    """The device's stored token for the code; for a wrong code, one that it does not have."""
    digests = [digest[:_STORED_LENGTH] for digest in credentials.digests(code)]
    found: StaticToken | None = device.token_set.filter(token__in=digests).first()
    return digests[0] if found is None else found.token
