"""Whether a user's logins are locked, why, and until when, in words for their page."""

from typing import NamedTuple

from django.conf import settings

from accounts.admin_login_limits import locked_everywhere_until, locked_places
from accounts.models import PinFailures, User
from accounts.models.pin_failures import DAY, strangers_bucket
from accounts.rate_limits import windows


class Lock(NamedTuple):
    """``why`` names the count; ``until`` says how it ends by itself."""

    why: str
    until: str


def pin_locks(user: User) -> list[Lock]:
    rows = PinFailures.objects.filter(email=user.email).order_by("bucket")
    return [_pin_lock(row, user) for row in rows if row.is_stopped]


def _pin_lock(failures: PinFailures, user: User) -> Lock:
    is_strangers = failures.bucket == strangers_bucket(user.email)
    where = "" if is_strangers else " on a device that they are logged in on"
    if failures.consecutive_failures >= settings.PIN_CONSECUTIVE_FAILURES:
        why = f"{failures.consecutive_failures} wrong PINs in a row{where}"
        return Lock(why, "until it is unlocked")
    ends_at = failures.day_started_at + DAY
    return Lock(
        f"{failures.failures_today} wrong PINs in 24 h{where}",
        f"until {ends_at:%Y-%m-%d %H:%M} UTC",
    )


def admin_login_locks(user: User) -> list[Lock]:
    everywhere = locked_everywhere_until(user)
    if everywhere is not None:
        number = windows.ADMIN_LOGIN_FAILURES_OF_USER.amount
        why = f"{number} wrong passwords in an hour; open only where they have logged in before"
        return [Lock(why, f"until {everywhere:%H:%M} UTC")]
    number = windows.ADMIN_LOGIN_FAILURES_AT_CLIENT.amount
    return [
        Lock(
            f"{number} wrong passwords from {place.where or 'a browser known to be theirs'}",
            f"until {place.until:%H:%M} UTC",
        )
        for place in locked_places(user)
    ]
