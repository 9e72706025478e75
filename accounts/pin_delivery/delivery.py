from collections.abc import Callable
from datetime import datetime

from django.conf import settings

from accounts.deliveries import delivering
from accounts.models import User
from accounts.pin_delivery.channels import Channel
from accounts.pin_delivery.email_channel import send_pin_email
from accounts.pin_delivery.sms_channel import send_pin_sms

_SENDERS: dict[Channel, Callable[[User, str, int], None]] = {
    Channel.EMAIL: send_pin_email,
    Channel.SMS: send_pin_sms,
}


def deliver(user: User, pin: str, channel: Channel, give_up_at: datetime) -> None:
    """Sends the PIN. Raises ``TryAgainError`` or ``DeliveryError``, without the code."""
    minutes = int(settings.PIN_LIFETIME.total_seconds() // 60)
    with delivering(f"PIN for user {user.pk}", channel, give_up_at=give_up_at):
        _SENDERS[channel](user, pin, minutes)
