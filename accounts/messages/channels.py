from enum import StrEnum

from django.conf import settings

from accounts.models import User

SMS_OFF = "off"


class SendVia(StrEnum):
    """The channels that the caller asks for."""

    BOTH = "both"
    SMS = "sms"
    EMAIL = "email"


class Channel(StrEnum):
    """A way to reach a user."""

    EMAIL = "email"
    SMS = "sms"


def channels_for(user: User, send_via: SendVia) -> tuple[Channel, ...]:
    """The channels to use; at least one, because every user has an e-mail address."""
    has_sms = bool(user.phone) and settings.SMS_URL != SMS_OFF
    if send_via is SendVia.EMAIL or not has_sms:
        return (Channel.EMAIL,)
    if send_via is SendVia.SMS:
        return (Channel.SMS,)
    return (Channel.EMAIL, Channel.SMS)
