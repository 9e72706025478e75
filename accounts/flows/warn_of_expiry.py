"""Warning administrators of API keys that expire soon."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.messages.quotas import count_mail_of
from accounts.models import ApiKey, Role, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from accounts.tasks import warn_of_key
from core.errors import RateLimitedError

NOTICE_DAYS = (30, 7, 1)


def warn_of_expiry() -> int:
    """Queues each due notice once, 30, 7 and 1 days before expiry; returns the number of keys.

    A missed notice is not sent late: the latest one that is due replaces the earlier ones.
    """
    return sum(_warn_if_due(api_key) for api_key in _expiring_keys())


def _expiring_keys() -> list[ApiKey]:
    expiring = ApiKey.objects.expiring_within(timedelta(days=max(NOTICE_DAYS)))
    return list(expiring.select_related("organisation").filter(organisation__is_active=True))


@transaction.atomic
def _warn_if_due(api_key: ApiKey) -> bool:
    if api_key.expires_at is None:
        return False
    remaining = api_key.expires_at - timezone.now()
    due = min(days for days in NOTICE_DAYS if remaining <= timedelta(days=days))
    # Claimed in the transaction that queues the e-mails: one process sends them, and none is lost.
    claimed = ApiKey.objects.filter(
        Q(expiry_notice_days__isnull=True) | Q(expiry_notice_days__gt=due), pk=api_key.pk
    ).update(expiry_notice_days=due)
    if claimed:
        for administrator in _administrators_of(api_key):
            if _may_warn(api_key, administrator):
                warn_of_key.enqueue(str(api_key.pk), str(administrator.pk))
    return bool(claimed)


def _may_warn(api_key: ApiKey, administrator: User) -> bool:
    """Whether a warning fits the limits: many expiring keys must not flood a mailbox."""
    try:
        hit([windows.KEY_WARNINGS_TO_ADDRESS], "key-warning-to", administrator.email)
        count_mail_of(api_key.organisation_id)
    except RateLimitedError:
        return False
    return True


def _administrators_of(api_key: ApiKey) -> QuerySet[User]:
    return User.objects.filter(
        is_active=True,
        memberships__organisation=api_key.organisation,
        memberships__role=Role.ADMINISTRATOR,
    )
