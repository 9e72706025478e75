"""How long wrong passwords keep the admin's door closed for a user name."""

import datetime as dt
from typing import Any

from axes.models import AccessFailureLog
from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone


def end_of_lock(failures: QuerySet[Any], allowed: int) -> dt.datetime | None:
    """When as many failures as are allowed, and not yet too old, stop counting; ``None``: now."""
    now = timezone.now()
    recent = failures.filter(attempt_time__gt=now - settings.ADMIN_LOGIN_FAILURES_WITHIN)
    latest = list(recent.order_by("-attempt_time").values_list("attempt_time", flat=True)[:allowed])
    if len(latest) < allowed:
        return None
    end: dt.datetime = latest[0] + settings.ADMIN_LOGIN_COOL_OFF
    return end if end > now else None


def locked_everywhere_until(email: str) -> dt.datetime | None:
    """While this lasts, nobody logs in under the address, wherever they are."""
    failures = AccessFailureLog.objects.filter(username=email)
    return end_of_lock(failures, settings.ADMIN_LOGIN_FAILURES_PER_USER)


def locked_addresses(email: str) -> dict[str, dt.datetime]:
    """The client addresses from which nobody logs in under the e-mail, and until when."""
    failures = AccessFailureLog.objects.filter(username=email)
    addresses = failures.order_by().values_list("ip_address", flat=True).distinct()
    allowed = settings.ADMIN_LOGIN_FAILURES_PER_USER_AND_ADDRESS
    ends = {
        address: end_of_lock(failures.filter(ip_address=address), allowed) for address in addresses
    }
    return {address or "unknown": end for address, end in ends.items() if end is not None}
