"""The worker's first half of sending a PIN: over which channels."""

from datetime import datetime

from accounts.audit import record_about
from accounts.flows.send_pin import refuse_what_is_late
from accounts.messages.channels import Channel, SendVia, channels_for
from accounts.messages.quotas import claim_sms, may_send_mail, organisation_that_pays
from accounts.models import AuthEventKind, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import is_first
from core.http.origin import NOWHERE


def choose_pin_channels(email: str, send_via: SendVia, asked_at: datetime) -> tuple[Channel, ...]:
    """The channels that the code goes over, each a delivery of its own from here on.

    Here messages are counted, once however often their delivery is tried. Nobody's address gets one
    channel, over which nothing will be sent. Raises ``DeliveryError`` for an old request.
    """
    user = User.objects.find_active_by_email(email)
    refuse_what_is_late(user, asked_at)
    if user is None:
        return (Channel.EMAIL,)
    return _within_quota(user, channels_for(user, send_via))


def _within_quota(user: User, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
    """Without SMS where none may be sent any more: an e-mail takes its place. None at all where
    the organisation's mails of the day are used up.
    """
    organisation_id = organisation_that_pays(user)
    if Channel.SMS in channels and claim_sms(user.phone, organisation_id) is not None:
        record_about(AuthEventKind.RATE_LIMITED, NOWHERE, user, reason="sms")
        channels = (Channel.EMAIL,)
    if Channel.EMAIL in channels and not may_send_mail(organisation_id):
        if is_first(windows.MESSAGES_REFUSED_ON_RECORD, "mail-of-organisation", str(user.pk)):
            record_about(AuthEventKind.RATE_LIMITED, NOWHERE, user, reason="mails")
        channels = tuple(channel for channel in channels if channel is not Channel.EMAIL)
    return channels
