"""What Apprise says of one message: it tells why a gateway refused, and only its log tells."""

import logging
from typing import Any


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


class _Listener(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
        if record.levelno >= logging.WARNING:
            logging.getLogger("apprise").handle(record)
