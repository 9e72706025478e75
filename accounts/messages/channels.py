"""The channels of messages, and the settings that they are sent with, without passwords."""

from enum import StrEnum
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from accounts.models import User

SMS_OFF = "off"
_SMTP = "django.core.mail.backends.smtp.EmailBackend"


class SendVia(StrEnum):
    """The channels that the caller asks for."""

    BOTH = "both"
    SMS = "sms"
    EMAIL = "email"


class Channel(StrEnum):
    """A way to reach a user."""

    EMAIL = "email"
    SMS = "sms"


def channels_asked_for(send_via: SendVia) -> tuple[Channel, ...]:
    return tuple(Channel) if send_via is SendVia.BOTH else (Channel(send_via),)


def channels_for(user: User, send_via: SendVia) -> tuple[Channel, ...]:
    """The channels to use; at least one, because every user has an e-mail address."""
    has_sms = bool(user.phone) and settings.SMS_URL != SMS_OFF
    if send_via is SendVia.EMAIL or not has_sms:
        return (Channel.EMAIL,)
    if send_via is SendVia.SMS:
        return (Channel.SMS,)
    return (Channel.EMAIL, Channel.SMS)


class Fact(NamedTuple):
    name: str
    value: str


def email_facts() -> list[Fact]:
    sender = Fact("From", settings.DEFAULT_FROM_EMAIL)
    if settings.EMAIL_BACKEND != _SMTP:
        return [Fact("Sent to", f"no mail server; files in {settings.OUTBOX_DIR}"), sender]
    return [
        Fact("Host", settings.EMAIL_HOST),
        Fact("Port", str(settings.EMAIL_PORT)),
        Fact("Encryption", _encryption()),
        Fact("Login", "user name and password" if settings.EMAIL_HOST_USER else "none"),
        sender,
    ]


def sms_facts() -> list[Fact]:
    if settings.SMS_URL == SMS_OFF:
        return [Fact("Sent to", "SMS is off; codes are sent by e-mail")]
    countries = ", ".join(sorted(settings.SMS_COUNTRIES)) or "all"
    budget = str(settings.SMS_DAILY_BUDGET) if settings.SMS_DAILY_BUDGET else "no limit"
    limits = [Fact("Countries", countries), Fact("SMS per day in total", budget)]
    if settings.SMS_URL is None:
        return [Fact("Sent to", f"no gateway; files in {settings.OUTBOX_DIR}"), *limits]
    return [Fact("Gateway", urlsplit(settings.SMS_URL).scheme), *limits]


def _encryption() -> str:
    if settings.EMAIL_USE_SSL:
        return "TLS from the start"
    return "STARTTLS" if settings.EMAIL_USE_TLS else "none"
