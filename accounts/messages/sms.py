"""Sending SMS with Apprise. Only Apprise's log says why a gateway refused a message."""

import logging
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.template.loader import render_to_string

from accounts.messages.delivering import UNKNOWN_GATEWAY, Failure, RefusedError, failure_of_gateway
from accounts.messages.outbox import write_sms
from accounts.models import User

_STATUS = re.compile(r"\berror=(\d+)")
_TEMPORARY = frozenset({408, 425, 429})
# Twilio's general error codes; the last three digits are the HTTP status.
_TWILIO = range(20_000, 21_000)


class SmsRefusedError(RefusedError):
    """The gateway refused the message; ``failure`` gives the reason for the admin page."""

    def __init__(self, message: str, failure: Failure, *, is_temporary: bool) -> None:
        super().__init__(message, is_temporary=is_temporary)
        self.failure = failure


def send_pin_sms(user: User, pin: str, minutes: int) -> None:
    if not user.phone:
        raise RefusedError("the profile has no phone any more", is_temporary=False)
    text = render_to_string("messages/pin_sms.txt", {"pin": pin, "minutes": minutes}).strip()
    send_sms(user.phone, text)


def send_sms(phone: str, text: str) -> Path | None:
    """Sends through ``SMS_URL``; without it, writes to the outbox and returns the file.

    Raises ``SmsRefusedError``.
    """
    if settings.SMS_URL is None:
        return write_sms(phone, text)
    send_through_gateway(settings.SMS_URL, phone, text)
    return None


def send_through_gateway(url: str, phone: str, text: str) -> None:
    """Sends through a URL in Apprise's notation, with ``{phone}`` for the number.

    Raises ``SmsRefusedError``.
    """
    # A tenth of a second and some megabytes, which only processes that send SMS need.
    from apprise import Apprise  # noqa: PLC0415

    gateway = Apprise()
    if not gateway.add(url.replace("{phone}", quote(phone, safe=""))):
        raise SmsRefusedError(UNKNOWN_GATEWAY.text, UNKNOWN_GATEWAY, is_temporary=False)
    log = GatewayLog(gateway)
    if not gateway.notify(body=text):
        reason = "no answer" if log.status is None else f"status {log.status}"
        raise SmsRefusedError(
            f"the gateway gave {reason}",
            failure_of_gateway(log.text),
            is_temporary=log.is_temporary,
        )


class GatewayLog:
    """Collects the log of one Apprise object, because messages are sent in many threads.

    Never show or keep the text: it may quote the gateway's URL and the message. Warnings also go
    to the log of Apprise, as they would without this class.
    """

    def __init__(self, gateway: Any) -> None:
        self._lines: list[str] = []
        logger = logging.Logger("moonhook.sms_gateway", logging.DEBUG)  # noqa: LOG001  (for one message)
        logger.addHandler(_Listener(self._lines))
        for service in gateway:
            service.logger = logger

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    @property
    def status(self) -> int | None:
        """The HTTP status or the gateway's error code; ``None`` without an answer."""
        found = _STATUS.search(self.text)
        return None if found is None else int(found[1])

    @property
    def is_temporary(self) -> bool:
        """Whether the same message may be accepted later."""
        if self.status is None:
            return True
        status = self.status - _TWILIO.start if self.status in _TWILIO else self.status
        return status in _TEMPORARY or 500 <= status < 600


class _Listener(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
        if record.levelno >= logging.WARNING:
            logging.getLogger("apprise").handle(record)
