"""Checking a typed code. django-otp counts wrong ones and makes the next try wait longer."""

import re
from datetime import timedelta
from math import ceil

from django.db import transaction
from django.utils import timezone
from django_otp.models import Device
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.flows.recovery_codes import token_of
from accounts.models import User
from core.errors import RateLimitedError

# Of nodes under NTP, by far.
_CLOCKS_DIFFER_BY = timedelta(minutes=1)
_TOTP_CODE = re.compile(r"[0-9]{6}")


def verify(user: User, typed: str) -> TOTPDevice | None:
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
