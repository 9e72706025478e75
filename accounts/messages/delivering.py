"""Handing messages to mail servers and SMS gateways: temporary and permanent failures."""

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
    """A gateway refused a message. ``is_temporary``: it may accept the same message later."""

    def __init__(self, message: str, *, is_temporary: bool) -> None:
        super().__init__(message)
        self.is_temporary = is_temporary


@contextmanager
def delivering(
    message: str, channel: str = "email", *, give_up_at: datetime | None = None
) -> Iterator[None]:
    """Raises ``TryAgainError`` or ``DeliveryError`` for any exception of a channel's library.

    If it is unknown whether the server took the message, the error counts as temporary: the
    message is rather sent twice than never.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  (channels' libraries raise anything)
        # Not the text of the error, which may quote the message and thus a code.
        reason = f"not sent by {channel}: {_kind(error)}"
        logger.warning("%s was %s", message, reason)
        DELIVERIES.labels(channel, "failed").inc()
        if is_temporary(error):
            raise TryAgainError(reason, give_up_at=give_up_at) from None
        raise DeliveryError(reason) from None
    DELIVERIES.labels(channel, "sent").inc()


def is_temporary(error: Exception) -> bool:
    """Whether the same message may be accepted later: no connection, a timeout, SMTP 4xx."""
    if isinstance(error, RefusedError):
        return error.is_temporary
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
