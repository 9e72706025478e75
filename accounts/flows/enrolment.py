"""Setting a second factor up, and ending it."""

from django.db import transaction
from django.utils import timezone
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.flows.recovery_codes import replace_recovery_codes
from accounts.flows.verification import accepts, as_typed
from accounts.models import User


def has_second_factor(user: User) -> bool:
    return TOTPDevice.objects.filter(user=user, confirmed=True).exists()


def find_pending(user: User) -> TOTPDevice | None:
    """The app that was shown a secret, and has not yet proved to know it."""
    return TOTPDevice.objects.filter(user=user, confirmed=False).first()


@transaction.atomic
def begin(user: User) -> TOTPDevice:
    """A new secret for the app. Counts for nothing until it is confirmed."""
    TOTPDevice.objects.filter(user=user, confirmed=False).delete()
    return TOTPDevice.objects.create(user=user, name="Authenticator app", confirmed=False)


def confirm(user: User, typed: str) -> tuple[TOTPDevice, list[str]] | None:
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
def remove(user: User) -> None:
    """The password alone is asked for from now on."""
    TOTPDevice.objects.filter(user=user).delete()
    StaticDevice.objects.filter(user=user).delete()


@transaction.atomic
def reset(user: User) -> None:
    """Removes it for a person who has lost it, and ends every login and session of theirs.

    What was verified by the lost one must not stay in, nor set up the next one.
    """
    remove(user)
    User.objects.filter(pk=user.pk).update(sessions_valid_after=timezone.now())
