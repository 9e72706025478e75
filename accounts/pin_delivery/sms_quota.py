"""SMS cost money: to which countries, how many to a number, how many a day in all."""

from enum import StrEnum

import phonenumbers
from django.conf import settings

from accounts.errors import RateLimitedError
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit


class SmsRefusal(StrEnum):
    """Why no SMS may go to a number."""

    COUNTRY = "country"
    NUMBER = "number-limit"
    BUDGET = "daily-budget"


def claim_sms(phone: str) -> SmsRefusal | None:
    """Counts one more SMS to the number; or says why it may not be sent."""
    if settings.SMS_COUNTRIES and country_of(phone) not in settings.SMS_COUNTRIES:
        return SmsRefusal.COUNTRY
    try:
        hit([windows.SMS_OF_NUMBER], "sms-to", phone)
    except RateLimitedError:
        return SmsRefusal.NUMBER
    try:
        if settings.SMS_DAILY_BUDGET:
            hit([windows.sms_budget(settings.SMS_DAILY_BUDGET)], "sms-in-all")
    except RateLimitedError:
        return SmsRefusal.BUDGET
    return None


def may_send_sms(phone: str) -> bool:
    """Whether one more SMS may go to the number; if so, it is counted."""
    return claim_sms(phone) is None


def country_of(phone: str) -> str | None:
    """The ISO 3166 code of an E.164 number's country."""
    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse(phone))
    except phonenumbers.NumberParseException:
        return None
