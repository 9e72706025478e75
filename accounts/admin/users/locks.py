"""Locked logins on a user's page: why, until when, and unlocking them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.enums import ActionVariant

from accounts.admin.reach import person, refuse_beyond
from accounts.admin_login_limits import locked_everywhere_until, locked_places
from accounts.flows.unlocking import reopen_admin_login, unlock_address
from accounts.models import PinFailures, User
from accounts.models.pin_failures import DAY, named_devices_bucket, strangers_bucket
from accounts.rate_limits import windows
from core.admin.confirmation import Question, confirmed
from core.admin.display import DANGER, SUCCESS, action, display, label
from core.http.origin import origin_of

_UNLOCK_PIN = Question(
    title="Unlock PIN login",
    consequences=(
        "The count of wrong PINs starts again at zero, and codes are accepted immediately. If "
        "somebody else was guessing, they can continue."
    ),
    button="Unlock",
)
_UNLOCK_ADMIN = Question(
    title="Unlock admin login",
    consequences=(
        "The count of wrong passwords starts again at zero, and the correct one is accepted "
        "immediately. If somebody else was guessing, they can continue."
    ),
    button="Unlock",
)


class Lock(NamedTuple):
    """A lock as a page shows it: ``why`` gives the count, ``until`` when or how it ends."""

    why: str
    until: str


def pin_locks(user: User) -> list[Lock]:
    rows = PinFailures.objects.filter(email=user.email).order_by("bucket")
    return [pin_lock_of(row) for row in rows if row.is_stopped]


def pin_lock_of(failures: PinFailures) -> Lock:
    """Says of what devices it is: an address may be locked for some and not for others."""
    where = {
        strangers_bucket(failures.email).name: "",
        named_devices_bucket(failures.email).name: " on new devices that asked for a code",
    }.get(failures.bucket, " on a device where they are logged in")
    if failures.is_stopped_until_unlocked:
        why = f"{failures.consecutive_failures} wrong PINs in a row{where}"
        return Lock(why, "until unlocked")
    ends_at = failures.day_started_at + DAY
    return Lock(
        f"{failures.failures_today} wrong PINs in 24 hours{where}",
        f"until {ends_at:%Y-%m-%d %H:%M} UTC",
    )


def admin_login_locks(user: User) -> list[Lock]:
    everywhere = locked_everywhere_until(user)
    if everywhere is not None:
        number = windows.ADMIN_LOGIN_FAILURES_OF_USER.amount
        why = f"{number} wrong passwords in an hour; they can log in only from known browsers"
        return [Lock(why, f"until {everywhere:%H:%M} UTC")]
    number = windows.ADMIN_LOGIN_FAILURES_AT_CLIENT.amount
    return [
        Lock(
            f"{number} wrong passwords from {place.where or 'a known browser'}",
            f"until {place.until:%H:%M} UTC",
        )
        for place in locked_places(user)
    ]


class UserLocks:
    """Mixin for the model admin of users: shows locks, and offers to unlock those that exist."""

    def has_pin_lock_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        """Whether the login is locked and this administrator may unlock it."""
        user = self.get_object(request, object_id) if object_id else None
        return user is not None and user.is_own and bool(pin_locks(user))

    def has_login_lock_permission(
        self: Any, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        user = self.get_object(request, object_id) if object_id else None
        return user is not None and user.is_own and bool(admin_login_locks(user))

    @display(description="PIN login")
    def pin_login(self, user: User) -> SafeString:
        return _shown(pin_locks(user))

    @display(description="Admin login")
    def admin_login(self, user: User) -> SafeString:
        return _shown(admin_login_locks(user))

    @action(
        description="Unlock PIN login",
        permissions=["pin_lock"],
        icon="lock_open",
        variant=ActionVariant.PRIMARY,
    )
    @confirmed(_UNLOCK_PIN, logged="Unlocked the PIN login.", told="{row} can log in by PIN again.")
    def unlock_pin_login(self, request: HttpRequest, user: User) -> None:
        refuse_beyond(request, user)
        unlock_address(user.email, origin=origin_of(request), by=person(request))

    @action(
        description="Unlock admin login",
        permissions=["login_lock"],
        icon="lock_open",
        variant=ActionVariant.PRIMARY,
    )
    @confirmed(
        _UNLOCK_ADMIN,
        logged="Unlocked the admin login.",
        told="{row} can log in to the admin again.",
    )
    def unlock_admin_login(self, request: HttpRequest, user: User) -> None:
        refuse_beyond(request, user)
        reopen_admin_login(user, origin=origin_of(request), by=person(request))


def _shown(locks: Sequence[Lock]) -> SafeString:
    if not locks:
        return label("Not locked", SUCCESS)
    return format_html(
        '<div class="mh-lock">{}<span>{}</span></div>',
        label("Locked", DANGER),
        format_html_join("; ", "{}, {}", locks),
    )
