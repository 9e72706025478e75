"""Warning administrators of API keys that expire soon."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.flows.administrator_mails import administrators_of, may_mail
from accounts.models import ApiKey
from accounts.rate_limits import windows
from accounts.tasks import warn_of_key

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
        organisation_id, limit = api_key.organisation_id, windows.KEY_WARNINGS_TO_ADDRESS
        for administrator in administrators_of(organisation_id):
            if may_mail(administrator, organisation_id, limit, "key-warning-to"):
                warn_of_key.enqueue(str(api_key.pk), str(administrator.pk))
    return bool(claimed)
