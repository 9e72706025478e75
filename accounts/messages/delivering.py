"""Handing messages to mail servers and SMS gateways: temporary and permanent failures.

Their texts are never repeated: they may quote the URL with its password, or the message.
"""

import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from smtplib import (
    SMTPAuthenticationError,
    SMTPException,
    SMTPNotSupportedError,
    SMTPRecipientsRefused,
    SMTPResponseException,
    SMTPSenderRefused,
    SMTPServerDisconnected,
)
from smtplib import SMTPServerDisconnected as Disconnected
from ssl import SSLError
from typing import NamedTuple

from core.errors import DeliveryError, TryAgainError
from core.metrics.instruments import DELIVERIES
from core.waiting import return_pooled_connection

logger = logging.getLogger(__name__)

_STATUS = re.compile(r"error=(\d{3})")
_AUTHENTICATION_STATUSES = {"401", "403"}


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
    # Servers may take long, and the pool's connections are few.
    return_pooled_connection()
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


class Failure(NamedTuple):
    """``code`` is for the audit log, ``text`` for the admin page."""

    code: str
    text: str


UNKNOWN_GATEWAY = Failure("unknown-gateway", "SMS_URL is not a URL that Apprise knows.")

_SIGNS_OF_GATEWAY = {
    r"timed? ?out": Failure("timeout", "The SMS gateway did not answer in time."),
    r"Connection refused": Failure(
        "refused", "The SMS gateway's host refused the connection. Check the port."
    ),
    r"Failed to resolve|Name or service not known|getaddrinfo|name resolution": Failure(
        "unknown-host", "The host name of the SMS gateway cannot be resolved."
    ),
    r"SSL|certificate": Failure(
        "no-tls", "The TLS connection to the SMS gateway failed. Check its certificate."
    ),
}
# The first match applies; later ones are more general.
_FAILURES_OF_EMAIL: dict[type[Exception], Failure] = {
    SMTPAuthenticationError: Failure(
        "authentication",
        "Authentication failed: the mail server refused the user name or password of EMAIL_URL.",
    ),
    SMTPRecipientsRefused: Failure(
        "address-refused", "The mail server refused the recipient's address."
    ),
    SMTPSenderRefused: Failure(
        "sender-refused", "The mail server refused the sender (EMAIL_FROM)."
    ),
    SMTPNotSupportedError: Failure(
        "not-supported",
        "The mail server does not offer the encryption or login that EMAIL_URL asks for.",
    ),
    SMTPServerDisconnected: Failure("disconnected", "The mail server closed the connection."),
    TimeoutError: Failure("timeout", "The mail server did not answer in time."),
    ConnectionRefusedError: Failure(
        "refused", "The mail server's host refused the connection. Check the port."
    ),
    socket.gaierror: Failure(
        "unknown-host", "The host name of the mail server cannot be resolved."
    ),
    SSLError: Failure(
        "no-tls", "The TLS connection to the mail server failed. Check its certificate."
    ),
}


def failure_of_email(error: Exception) -> Failure:
    """Translates an exception of the mail server or the connection to it."""
    # smtplib reports a server that does not answer in time as disconnected.
    if isinstance(error, SMTPServerDisconnected) and "timed out" in str(error):
        return _FAILURES_OF_EMAIL[TimeoutError]
    for kind, failure in _FAILURES_OF_EMAIL.items():
        if isinstance(error, kind):
            return failure
    if isinstance(error, SMTPResponseException):
        return Failure(
            "refused-message",
            f"The mail server answered {error.smtp_code} and did not accept the message.",
        )
    return Failure("failed", f"Not sent: {type(error).__name__}.")


def failure_of_gateway(log: str) -> Failure:
    """Translates Apprise's log of one message."""
    status = _STATUS.search(log)
    if status is not None and status[1] in _AUTHENTICATION_STATUSES:
        return Failure(
            "authentication", f"Authentication failed: the SMS gateway answered {status[1]}."
        )
    if status is not None:
        return Failure(
            "refused-message",
            f"The SMS gateway answered {status[1]} and did not accept the message.",
        )
    for sign, failure in _SIGNS_OF_GATEWAY.items():
        if re.search(sign, log, re.IGNORECASE):
            return failure
    return Failure("failed", "The SMS gateway did not accept the message.")
