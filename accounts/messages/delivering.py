"""Giving messages to servers of others, which refuse them for now, for good, or not clearly."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from smtplib import SMTPException, SMTPRecipientsRefused, SMTPResponseException
from smtplib import SMTPServerDisconnected as Disconnected

from core.errors import DeliveryError, TryAgainError
from core.metrics.catalogue import DELIVERIES

logger = logging.getLogger(__name__)


class RefusedError(Exception):
    """A gateway's no. ``is_passing`` says whether it may say yes to the same message later."""

    def __init__(self, message: str, *, is_passing: bool) -> None:
        super().__init__(message)
        self.is_passing = is_passing


@contextmanager
def delivering(
    message: str, channel: str = "email", *, give_up_at: datetime | None = None
) -> Iterator[None]:
    """Raises ``TryAgainError`` or ``DeliveryError`` for whatever a channel's library raises.

    Where the server may have taken the message without our learning of it, the error is a passing
    one: rather twice than never.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  (whatever a channel's library raises)
        # Its kind only: the text may quote the message, and with it a code.
        reason = f"not sent by {channel}: {_kind(error)}"
        logger.warning("%s was %s", message, reason)
        DELIVERIES.inc(channel, "failed")
        if is_passing(error):
            raise TryAgainError(reason, give_up_at=give_up_at) from None
        raise DeliveryError(reason) from None
    DELIVERIES.inc(channel, "sent")


def is_passing(error: Exception) -> bool:
    """Whether the same message may be taken later: no connection, a timeout, SMTP's 4xx."""
    if isinstance(error, RefusedError):
        return error.is_passing
    if isinstance(error, SMTPRecipientsRefused):
        return all(400 <= code < 500 for code, _ in error.recipients.values())
    if isinstance(error, SMTPResponseException):
        return not 500 <= error.smtp_code < 600
    if isinstance(error, SMTPException):
        return isinstance(error, Disconnected)
    return isinstance(error, OSError)


def _kind(error: Exception) -> str:
    name = type(error).__name__
    if isinstance(error, RefusedError):
        return str(error)
    if isinstance(error, SMTPRecipientsRefused):
        return f"{name} {', '.join(str(code) for code, _ in error.recipients.values())}"
    if isinstance(error, SMTPResponseException):
        return f"{name} {error.smtp_code}"
    return name
