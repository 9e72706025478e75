"""What accounts register for maintenance: deletions, warnings, and digests by their pepper."""

from collections import Counter
from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from accounts.flows.api_keys import revoke_keys_ended_with_approver
from accounts.flows.notices import warn_of_expiry
from accounts.models import (
    ApiKey,
    AuthEvent,
    DeviceToken,
    Invitation,
    PinChallenge,
    PinFailures,
    User,
)
from accounts.models.rotating_secret import count_by, count_by_pepper
from accounts.rate_limits.counters import forget_ended_counters
from core.database.batches import delete_in_batches
from core.database.ids import first_id_at
from core.encryption import register_digests
from core.upkeep import register_duties


def forget_old_challenges() -> int:
    """Delete challenges, with the digests of their codes, a day after the last code expired."""
    day_ago = timezone.now() - timedelta(days=1)
    return delete_in_batches(PinChallenge.objects.filter(expires_at__lte=day_ago))


def forget_expired_invitations() -> int:
    return delete_in_batches(Invitation.objects.expired(), order=("expires_at",))


def forget_old_failures() -> int:
    """Delete counters that lock nobody: every address for which a PIN is requested has one."""
    day_ago = timezone.now() - timedelta(days=1)
    idle = PinFailures.objects.filter(day_started_at__lte=day_ago)
    unknown = ~Exists(User.objects.filter(email=OuterRef("email")))
    open_challenge = Exists(PinChallenge.objects.filter(email=OuterRef("email")))
    return delete_in_batches(idle.filter(~open_challenge, unknown | Q(consecutive_failures=0)))


def forget_old_events() -> int:
    """Delete by UUIDv7 id, which is time-ordered and indexed; ``at`` is not."""
    end = first_id_at(timezone.now() - settings.AUTH_EVENTS_KEPT)
    return delete_in_batches(AuthEvent.objects.filter(pk__lt=end))


def _api_keys() -> Counter[int]:
    return count_by_pepper(ApiKey.objects.filter(revoked_at__isnull=True))


def _device_tokens() -> Counter[int]:
    return count_by(DeviceToken.objects.filter(revoked_at__isnull=True), "pepper_version")


def register() -> None:
    register_duties(
        revoke_keys_ended_with_approver,
        warn_of_expiry,
        forget_old_challenges,
        forget_expired_invitations,
        forget_ended_counters,
        forget_old_failures,
        forget_old_events,
    )
    register_digests("api_keys", _api_keys)
    register_digests("device_tokens", _device_tokens)
