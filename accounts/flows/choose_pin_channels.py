"""The worker's first half of sending a PIN: over which channels."""

from datetime import datetime

from accounts.audit import record_about
from accounts.flows.send_pin import refuse_what_is_late
from accounts.models import AuthEventKind, User
from accounts.pin_delivery.channels import Channel, SendVia, channels_for
from accounts.pin_delivery.sms_quota import may_send_sms
from config.http.origin import NOWHERE


def choose_pin_channels(email: str, send_via: SendVia, asked_at: datetime) -> tuple[Channel, ...]:
    """The channels that the code goes over, each a delivery of its own from here on.

    Here an SMS is counted, once however often its delivery is tried. Nobody's address gets one
    channel, over which nothing will be sent. Raises ``DeliveryError`` for an old request.
    """
    user = User.objects.find_active_by_email(email)
    refuse_what_is_late(user, asked_at)
    if user is None:
        return (Channel.EMAIL,)
    return _within_quota(user, channels_for(user, send_via))


def _within_quota(user: User, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
    """Without SMS where none may be sent any more; an e-mail takes its place."""
    if Channel.SMS not in channels or may_send_sms(user.phone):
        return channels
    record_about(AuthEventKind.RATE_LIMITED, NOWHERE, user, reason="sms")
    return (Channel.EMAIL,)
