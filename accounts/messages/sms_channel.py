from pathlib import Path
from urllib.parse import quote

from apprise import Apprise
from django.conf import settings
from django.template.loader import render_to_string

from accounts.messages.delivering import RefusedError
from accounts.messages.failures import UNKNOWN_GATEWAY, Failure, failure_of_gateway
from accounts.messages.gateway_log import GatewayLog
from accounts.messages.outbox import write_sms
from accounts.models import User


class SmsRefusedError(RefusedError):
    """The gateway did not take the message; ``failure`` says why to who reads the page."""

    def __init__(self, message: str, failure: Failure, *, is_passing: bool) -> None:
        super().__init__(message, is_passing=is_passing)
        self.failure = failure


def send_pin_sms(user: User, pin: str, minutes: int) -> None:
    if not user.phone:
        raise RefusedError("the profile has no phone any more", is_passing=False)
    text = render_to_string("messages/pin_sms.txt", {"pin": pin, "minutes": minutes}).strip()
    send_sms(user.phone, text)


def send_sms(phone: str, text: str) -> Path | None:
    """Sends through the gateway of ``SMS_URL``, or into the outbox where there is none: then its
    file. Raises ``SmsRefusedError``.
    """
    if settings.SMS_URL is None:
        return write_sms(phone, text)
    send_through_gateway(settings.SMS_URL, phone, text)
    return None


def send_through_gateway(url: str, phone: str, text: str) -> None:
    """``url`` is in Apprise's notation, with ``{phone}`` for the number.

    Raises ``SmsRefusedError`` when the gateway does not take the message.
    """
    gateway = Apprise()
    if not gateway.add(url.replace("{phone}", quote(phone, safe=""))):
        raise SmsRefusedError(UNKNOWN_GATEWAY.words, UNKNOWN_GATEWAY, is_passing=False)
    log = GatewayLog(gateway)
    if not gateway.notify(body=text):
        reason = "no answer" if log.status is None else f"status {log.status}"
        raise SmsRefusedError(
            f"the gateway gave {reason}", failure_of_gateway(log.text), is_passing=log.is_passing
        )
