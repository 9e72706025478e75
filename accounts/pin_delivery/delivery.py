import logging
from collections.abc import Callable, Sequence

from django.conf import settings

from accounts.models import User
from accounts.pin_delivery.channels import Channel
from accounts.pin_delivery.email_channel import send_pin_email
from accounts.pin_delivery.sms_channel import send_pin_sms
from config.metrics.catalogue import DELIVERIES

logger = logging.getLogger(__name__)

_SENDERS: dict[Channel, Callable[[User, str, int], None]] = {
    Channel.EMAIL: send_pin_email,
    Channel.SMS: send_pin_sms,
}


class DeliveryError(Exception):
    """Some channel did not take the message; the text names the channels, never the code."""


def deliver(user: User, pin: str, channels: Sequence[Channel]) -> None:
    """Sends the PIN over every channel, the others too when one fails."""
    minutes = int(settings.PIN_LIFETIME.total_seconds() // 60)
    failed = []
    for channel in channels:
        try:
            _SENDERS[channel](user, pin, minutes)
        except Exception as error:  # noqa: BLE001  (whatever a channel's library raises)
            # Its kind only: the text may quote the message, and with it the code.
            kind = type(error).__name__
            logger.error("PIN for user %s was not sent by %s: %s", user.pk, channel, kind)  # noqa: TRY400
            failed.append(channel)
            DELIVERIES.inc(channel, "failed")
        else:
            DELIVERIES.inc(channel, "sent")
    if failed:
        raise DeliveryError(f"not sent by {', '.join(failed)}")
