"""The second factor of staff: an authenticator app (TOTP), and recovery codes for its loss."""

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


def has_second_factor(user: User) -> bool:
    return TOTPDevice.objects.filter(user=user, confirmed=True).exists()


def find_pending_enrolment(user: User) -> TOTPDevice | None:
    """The app that was shown a secret, and has not yet proved to know it."""
    return TOTPDevice.objects.filter(user=user, confirmed=False).first()


@transaction.atomic
def begin_enrolment(user: User) -> TOTPDevice:
    """A new secret for the app. Counts for nothing until it is confirmed."""
    TOTPDevice.objects.filter(user=user, confirmed=False).delete()
    return TOTPDevice.objects.create(user=user, name="Authenticator app", confirmed=False)


def confirm_enrolment(user: User, typed: str) -> tuple[TOTPDevice, list[str]] | None:
    """The app, which is asked for from now on, and the recovery codes; ``None``: a wrong code.

    Raises ``RateLimitedError`` while wrong codes make everybody wait.
    """
    with transaction.atomic():
        pending = TOTPDevice.objects.select_for_update().filter(user=user, confirmed=False).first()
        if pending is None or not accepts(pending, as_typed(typed)):
            return None
        TOTPDevice.objects.filter(user=user, confirmed=True).delete()
        pending.confirmed = True
        pending.save(update_fields=["confirmed"])
        return pending, replace_recovery_codes(user)


@transaction.atomic
def remove_second_factor(user: User) -> None:
    """The password alone is asked for from now on."""
    TOTPDevice.objects.filter(user=user).delete()
    StaticDevice.objects.filter(user=user).delete()


@transaction.atomic
def reset_second_factor(user: User) -> None:
    """Removes it for a person who has lost it, and ends every login and session of theirs.

    What was verified by the lost one must not stay in, nor set up the next one.
    """
    remove_second_factor(user)
    User.objects.filter(pk=user.pk).update(sessions_valid_after=timezone.now())


# Of nodes under NTP, by far.
_CLOCKS_DIFFER_BY = timedelta(minutes=1)
_TOTP_CODE = re.compile(r"[0-9]{6}")


def verify_code(user: User, typed: str) -> TOTPDevice | None:
    """The user's app, if the code is one of its own (six digits) or a recovery code.

    A code is good once. Raises ``RateLimitedError`` while wrong ones make everybody wait.
    """
    code = as_typed(typed)
    with transaction.atomic():
        app = TOTPDevice.objects.select_for_update().filter(user=user, confirmed=True).first()
        if app is None:
            return None
        if _TOTP_CODE.fullmatch(code):
            return app if accepts(app, code) else None
        paper = StaticDevice.objects.select_for_update().filter(user=user).first()
        if paper is None:
            return None
        return app if accepts(paper, token_of(paper, code)) else None


def accepts(device: Device, token: str) -> bool:
    """Call inside a transaction, with the device's row locked."""
    _forget_the_future(device)
    is_allowed, why = device.verify_is_allowed()
    if not is_allowed:
        wait = why["locked_until"] - timezone.now()
        raise RateLimitedError(max(1, ceil(wait.total_seconds())))
    return bool(device.verify_token(token))


def _forget_the_future(device: Device) -> None:
    """Drops what was noted before the clock was set back.

    Otherwise a wrong code would make the person wait, and a right one would make every later code
    a used one, until the clock is there again. The codes of this moment count as used.
    """
    now, failed_at = timezone.now(), device.throttling_failure_timestamp
    if failed_at is not None and failed_at > now + _CLOCKS_DIFFER_BY:
        device.throttling_failure_timestamp = None
    if isinstance(device, TOTPDevice):
        step = int(now.timestamp() - device.t0) // device.step
        device.last_t = min(device.last_t, step + device.drift + device.tolerance)


def as_typed(code: str) -> str:
    """Without the blanks and dashes that people put between groups."""
    return re.sub(r"[\s-]", "", code).lower()


COUNT = 10
# Without letters and digits that are mistaken for each other: 49 bits in ten of them.
_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_LENGTH = 10
# As long as django-otp's column: 64 bits of the digest.
_KEPT = 16


def replace_recovery_codes(user: User) -> list[str]:
    """New codes, of which only digests are kept; the earlier ones are worth nothing."""
    StaticDevice.objects.filter(user=user).delete()
    device = StaticDevice.objects.create(user=user, name="Recovery codes")
    codes = ["".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH)) for _ in range(COUNT)]
    StaticToken.objects.bulk_create(
        StaticToken(device=device, token=credentials.digest(code).value[:_KEPT]) for code in codes
    )
    return [f"{code[:5]}-{code[5:]}" for code in codes]


def count_recovery_codes(user: User) -> int:
    return StaticToken.objects.filter(device__user=user).count()


def token_of(device: StaticDevice, code: str) -> str:
    """The device's token for the code; one that it does not have for a wrong code."""
    digests = [digest[:_KEPT] for digest in credentials.digests(code)]
    found: StaticToken | None = device.token_set.filter(token__in=digests).first()
    return digests[0] if found is None else found.token
