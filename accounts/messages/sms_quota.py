"""SMS cost money: to which countries, how many to a number, how many a day in all."""

from enum import StrEnum
from uuid import UUID

import phonenumbers
from django.conf import settings

from accounts.messages.message_quota import count_sms_of
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.errors import RateLimitedError


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
