"""SMS, sent by Apprise. Why a gateway refused, only its log tells."""

import logging
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from apprise import Apprise
from django.conf import settings
from django.template.loader import render_to_string

from accounts.messages.delivering import RefusedError
from accounts.messages.failures import UNKNOWN_GATEWAY, Failure, failure_of_gateway
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


_STATUS = re.compile(r"\berror=(\d+)")
_PASSING = frozenset({408, 425, 429})
# Twilio's codes of its interface in general; the last three digits are the HTTP status.
_TWILIO = range(20_000, 21_000)


class GatewayLog:
    """Listens to one Apprise object and to no other: messages are sent in many threads.

    Never show or keep the text: it may quote the address of the gateway, and the message.
    Warnings go on to the log of Apprise, as they would without it.
    """

    def __init__(self, gateway: Any) -> None:
        self._lines: list[str] = []
        logger = logging.Logger("moonhook.sms_gateway", logging.DEBUG)  # noqa: LOG001  (of one message)
        logger.addHandler(_Listener(self._lines))
        for service in gateway:
            service.logger = logger

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    @property
    def status(self) -> int | None:
        """The HTTP status or the gateway's own code; ``None`` without an answer."""
        found = _STATUS.search(self.text)
        return None if found is None else int(found[1])

    @property
    def is_passing(self) -> bool:
        """Whether the same message may be taken later. An invalid number stays one."""
        if self.status is None:
            return True
        status = self.status - _TWILIO.start if self.status in _TWILIO else self.status
        return status in _PASSING or 500 <= status < 600


class _Listener(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
        if record.levelno >= logging.WARNING:
            logging.getLogger("apprise").handle(record)
