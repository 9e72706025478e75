"""Keys that end soon: their organisation's administrators are told in time."""

from datetime import timedelta

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import Q
from django.template.loader import render_to_string
from django.utils import timezone

from accounts.models import ApiKey, Role, User

NOTICE_DAYS = (30, 7, 1)


def warn_of_expiry() -> int:
    """Sends each notice that is due, once; how many keys were told of.

    A key is told of 30, 7 and 1 days before it ends. What was missed meanwhile is not sent late:
    the latest due notice stands for the earlier ones.
    """
    return sum(_warn_if_due(api_key) for api_key in _ending_keys())


def _ending_keys() -> list[ApiKey]:
    ending = ApiKey.objects.expiring_within(timedelta(days=max(NOTICE_DAYS)))
    return list(ending.select_related("organisation").filter(organisation__is_active=True))


def _warn_if_due(api_key: ApiKey) -> bool:
    if api_key.expires_at is None:
        return False
    remaining = api_key.expires_at - timezone.now()
    due = min(days for days in NOTICE_DAYS if remaining <= timedelta(days=days))
    # Claimed before it is sent: of two processes, one sends.
    claimed = ApiKey.objects.filter(
        Q(expiry_notice_days__isnull=True) | Q(expiry_notice_days__gt=due), pk=api_key.pk
    ).update(expiry_notice_days=due)
    if claimed:
        _send(api_key)
    return bool(claimed)


def _send(api_key: ApiKey) -> None:
    administrators = User.objects.filter(
        is_active=True,
        memberships__organisation=api_key.organisation,
        memberships__role=Role.ADMINISTRATOR,
    )
    context = {"api_key": api_key, "public_url": settings.PUBLIC_URL}
    for administrator in administrators:
        send_mail(
            subject=render_to_string("messages/key_expires_subject.txt", context).strip(),
            message=render_to_string("messages/key_expires.txt", context),
            from_email=None,
            recipient_list=[administrator.delivery_email],
        )
