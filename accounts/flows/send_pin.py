"""The worker's second half of sending a PIN: one channel's delivery."""

from datetime import datetime

from django.conf import settings
from django.utils import timezone

from accounts.audit import record_about
from accounts.flows.delivery import deliver
from accounts.flows.make_code import code_to_send
from accounts.messages.channels import Channel
from accounts.models import AuthEventKind, User
from core.errors import DeliveryError
from core.http.origin import NOWHERE


def send_pin(email: str, channel: Channel, asked_at: datetime) -> None:
    """Sends the code that the canonical address was asked a code for at that time.

    The first delivery makes it; the other channel's, and whatever is tried again, send the same
    one. It is committed before it is sent, so that it works as soon as it is read, and is valid
    for ``PIN_LIFETIME`` from then on. Where it has been used meanwhile nothing is sent, and the
    code of an address that nobody active has is sent to nobody.

    Raises ``TryAgainError`` when that may help, ``DeliveryError`` when it will not, and when it
    was asked for longer ago than a code lives.
    """
    user = User.objects.find_active_by_email(email)
    refuse_what_is_late(user, asked_at)
    pin = code_to_send(email, user, asked_at)
    if user is None or pin is None:
        return
    try:
        deliver(user, pin, channel, give_up_at=asked_at + settings.PIN_LIFETIME)
    except DeliveryError as error:
        record_about(AuthEventKind.PIN_NOT_SENT, NOWHERE, user, reason=str(error)[:60])
        raise
    record_about(AuthEventKind.PIN_SENT, NOWHERE, user, reason=channel)


def refuse_what_is_late(user: User | None, asked_at: datetime) -> None:
    """Nobody waits for a code of so long ago: who gets it now would wonder who asked for it."""
    if timezone.now() < asked_at + settings.PIN_LIFETIME:
        return
    if user is not None:
        record_about(AuthEventKind.PIN_NOT_SENT, NOWHERE, user, reason="asked for too long ago")
    raise DeliveryError("asked for too long ago")
