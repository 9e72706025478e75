from collections.abc import Callable
from datetime import datetime

from django.conf import settings

from accounts.messages.channels import Channel
from accounts.messages.delivering import delivering
from accounts.messages.email import send_pin_email
from accounts.messages.sms import send_pin_sms
from accounts.models import User

_SENDERS: dict[Channel, Callable[[User, str, int], None]] = {
    Channel.EMAIL: send_pin_email,
    Channel.SMS: send_pin_sms,
}


def deliver(user: User, pin: str, channel: Channel, give_up_at: datetime) -> None:
    """Sends the PIN. Raises ``TryAgainError`` or ``DeliveryError``, without the code."""
    minutes = int(settings.PIN_LIFETIME.total_seconds() // 60)
    with delivering(f"PIN for user {user.pk}", channel, give_up_at=give_up_at):
        _SENDERS[channel](user, pin, minutes)
