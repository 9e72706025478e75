"""Quotas of messages: per organisation, and for SMS, which cost money.

Limits per address are not enough, because an organisation chooses its users' addresses and
numbers. Messages to superusers count for no organisation.
"""

from enum import StrEnum
from uuid import UUID

import phonenumbers
from django.conf import settings

from accounts.audit import record
from accounts.models import AuditReason, AuthEventKind, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit, is_first
from core.errors import RateLimitedError
from core.http.origin import NOWHERE

# Users without any organisation share the quota of one.
NO_ORGANISATION = UUID(int=0)


def organisation_that_pays(user: User) -> UUID | None:
    """The organisation whose quota a message counts for: the user's home, or else any other."""
    if user.is_superuser or user.home_id is not None:
        return user.tenant_id
    return min(user.organisations.values_list("pk", flat=True), default=NO_ORGANISATION)


def count_mail_of(organisation_id: UUID | None) -> None:
    """Counts one e-mail. Raises ``RateLimitedError``."""
    _count("mail-of-organisation", settings.ORGANISATION_MAILS_PER_DAY, organisation_id)


def count_sms_of(organisation_id: UUID | None) -> None:
    """Counts one SMS. Raises ``RateLimitedError``."""
    _count("sms-of-organisation", settings.ORGANISATION_SMS_PER_DAY, organisation_id)


def may_send_mail(organisation_id: UUID | None) -> bool:
    """Counts one e-mail; false if the quota is used up."""
    try:
        count_mail_of(organisation_id)
    except RateLimitedError:
        return False
    return True


def may_mail_user(user: User) -> bool:
    """Counts one e-mail to the user; false, and on record, if the quota is used up."""
    if may_send_mail(organisation_that_pays(user)):
        return True
    if is_first(windows.MESSAGES_REFUSED_ON_RECORD, "mail-of-organisation", str(user.pk)):
        record(AuthEventKind.RATE_LIMITED, NOWHERE, user=user, reason=AuditReason.MAIL_LIMIT)
    return False


def _count(action: str, per_day: int, organisation_id: UUID | None) -> None:
    if organisation_id is not None and per_day:
        hit([windows.a_day(per_day)], action, str(organisation_id))


class SmsRefusal(StrEnum):
    """Why no SMS may be sent to a number."""

    COUNTRY = "country"
    NUMBER = "number-limit"
    ORGANISATION = "organisation-limit"
    BUDGET = "daily-budget"


def claim_sms(phone: str, organisation_id: UUID | None) -> SmsRefusal | None:
    """Counts one SMS to the number for the organisation, or returns why it may not be sent."""
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
            hit([windows.a_day(settings.SMS_DAILY_BUDGET)], "sms-in-all")
    except RateLimitedError:
        return SmsRefusal.BUDGET
    return None


def country_of(phone: str) -> str | None:
    """The ISO 3166 country code of an E.164 number."""
    try:
        return phonenumbers.region_code_for_number(phonenumbers.parse(phone))
    except phonenumbers.NumberParseException:
        return None
