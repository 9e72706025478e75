"""The settings that messages are sent with, without passwords and tokens."""

from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from accounts.messages.channels import SMS_OFF

_SMTP = "django.core.mail.backends.smtp.EmailBackend"


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
