"""What an SMS gateway answered: Apprise says only whether it worked, and logs the rest.

It may send from a thread of its own, so what is heard is whatever is logged meanwhile: a worker
delivers one message at a time.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

_STATUS = re.compile(r"\berror=(\d+)")
_PASSING = frozenset({408, 425, 429})
# Twilio's codes of its interface in general; the last three digits are the HTTP status.
_TWILIO = range(20_000, 21_000)


class GatewayAnswer(logging.Handler):
    """``status`` is the HTTP status or the gateway's own code; ``None`` without an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.status: int | None = None

    def emit(self, record: logging.LogRecord) -> None:
        found = _STATUS.search(record.getMessage())
        if found:
            self.status = int(found[1])

    @property
    def is_passing(self) -> bool:
        """Whether the same message may be taken later. An invalid number stays one."""
        if self.status is None:
            return True
        status = self.status - _TWILIO.start if self.status in _TWILIO else self.status
        return status in _PASSING or 500 <= status < 600


@contextmanager
def listening() -> Iterator[GatewayAnswer]:
    answer, logger = GatewayAnswer(), logging.getLogger("apprise")
    logger.addHandler(answer)
    try:
        yield answer
    finally:
        logger.removeHandler(answer)
