"""How many messages an organisation may cause in a day, whomever they go to.

Its administrators and programs choose the addresses and numbers of its users, so windows of an
address alone do not bound them. Superusers count for none.
"""

from uuid import UUID

from django.conf import settings

from accounts.models import User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.errors import RateLimitedError

# Of users whom every organisation has let go: together they have what one organisation has.
NO_ORGANISATION = UUID(int=0)


def organisation_that_pays(user: User) -> UUID | None:
    """For whom messages to the user count: their home; of who has left it, where they are now."""
    if user.is_superuser or user.home_id is not None:
        return user.tenant_id
    return min(user.organisations.values_list("pk", flat=True), default=NO_ORGANISATION)


def count_mail_of(organisation_id: UUID | None) -> None:
    """Counts one more mail. Raises ``RateLimitedError``."""
    _count("mail-of-organisation", settings.ORGANISATION_MAILS_PER_DAY, organisation_id)


def count_sms_of(organisation_id: UUID | None) -> None:
    """Counts one more SMS. Raises ``RateLimitedError``."""
    _count("sms-of-organisation", settings.ORGANISATION_SMS_PER_DAY, organisation_id)


def may_send_mail(organisation_id: UUID | None) -> bool:
    """Whether one more mail may be sent; if so, it is counted."""
    try:
        count_mail_of(organisation_id)
    except RateLimitedError:
        return False
    return True


def _count(action: str, per_day: int, organisation_id: UUID | None) -> None:
    if organisation_id is not None and per_day:
        hit([windows.messages_a_day(per_day)], action, str(organisation_id))
