"""How many messages may be sent: of an organisation, and of SMS, which cost money.

Its administrators and programs choose the addresses and numbers of its users, so windows of an
address alone do not bound them. Superusers count for none.
"""

from enum import StrEnum
from uuid import UUID

import phonenumbers
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


class SmsRefusal(StrEnum):
    """Why no SMS may go to a number."""

    COUNTRY = "country"
    NUMBER = "number-limit"
    ORGANISATION = "organisation-limit"
    BUDGET = "daily-budget"


def claim_sms(phone: str, organisation_id: UUID | None) -> SmsRefusal | None:
    """Counts one more SMS to the number, which the organisation causes; or says why it may not
    be sent.
    """
    if settings.SMS_COUNTRIES and country_of(phone) not in settings.SMS_COUNTRIES:
        return SmsRefusal.COUNTRY
    try:
        hit([windows.SMS_OF_NUMBER], "sms-to", phone)
    except RateLimitedError:
        return SmsRefusal.NUMBER
    try:
        count_sms_of(organisation_id)
    except RateLimitedError:
        return SmsRefusal.ORGANISATION
    try:
        if settings.SMS_DAILY_BUDGET:
            hit([windows.messages_a_day(settings.SMS_DAILY_BUDGET)], "sms-in-all")
    except RateLimitedError:
        return SmsRefusal.BUDGET
    return None


def country_of(phone: str) -> str | None:
    """The ISO 3166 code of an E.164 number's country."""
    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse(phone))
    except phonenumbers.NumberParseException:
        return None
