"""What Apprise says of one message: it tells why a gateway refused, and only its log tells."""

import logging
import re
from typing import Any

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
