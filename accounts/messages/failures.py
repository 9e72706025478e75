"""Why a message was not sent, in words of ours.

What a mail server, a gateway or a library says is read, and never repeated: it may quote the
address with its password, or the message.
"""

import re
import socket
from smtplib import (
    SMTPAuthenticationError,
    SMTPNotSupportedError,
    SMTPRecipientsRefused,
    SMTPResponseException,
    SMTPSenderRefused,
    SMTPServerDisconnected,
)
from ssl import SSLError
from typing import NamedTuple


class Failure(NamedTuple):
    """``code`` is for the audit, ``words`` for who reads the page."""

    code: str
    words: str


UNKNOWN_GATEWAY = Failure("unknown-gateway", "SMS_URL is not an address that Apprise knows.")

_STATUS = re.compile(r"error=(\d{3})")
_AUTHENTICATION_STATUSES = {"401", "403"}
_SIGNS_OF_GATEWAY = {
    r"timed? ?out": Failure("timeout", "The SMS gateway did not answer in time."),
    r"Connection refused": Failure(
        "refused", "The SMS gateway's host refused the connection: is the port right?"
    ),
    r"Failed to resolve|Name or service not known|getaddrinfo|name resolution": Failure(
        "unknown-host", "The name of the SMS gateway's host is not known."
    ),
    r"SSL|certificate": Failure(
        "no-tls", "The encrypted connection to the SMS gateway failed: TLS or its certificate."
    ),
}


# The first that fits: later ones are wider.
_FAILURES_OF_EMAIL: dict[type[Exception], Failure] = {
    SMTPAuthenticationError: Failure(
        "authentication",
        "Authentication failed: the mail server refused the user name or the password of "
        "EMAIL_URL.",
    ),
    SMTPRecipientsRefused: Failure("address-refused", "The mail server refused the address."),
    SMTPSenderRefused: Failure("sender-refused", "The mail server refused the sender, EMAIL_FROM."),
    SMTPNotSupportedError: Failure(
        "not-supported",
        "The mail server does not offer what EMAIL_URL asks for: encryption, or logging in.",
    ),
    SMTPServerDisconnected: Failure("disconnected", "The mail server ended the connection."),
    TimeoutError: Failure("timeout", "The mail server did not answer in time."),
    ConnectionRefusedError: Failure(
        "refused", "The mail server's host refused the connection: is the port right?"
    ),
    socket.gaierror: Failure("unknown-host", "The name of the mail server's host is not known."),
    SSLError: Failure(
        "no-tls", "The encrypted connection to the mail server failed: TLS or its certificate."
    ),
}


def failure_of_email(error: Exception) -> Failure:
    """What a mail server or the way there raised."""
    # smtplib's word for a server that is silent where a greeting or an answer is due.
    if isinstance(error, SMTPServerDisconnected) and "timed out" in str(error):
        return _FAILURES_OF_EMAIL[TimeoutError]
    for kind, failure in _FAILURES_OF_EMAIL.items():
        if isinstance(error, kind):
            return failure
    if isinstance(error, SMTPResponseException):
        return Failure(
            "refused-message",
            f"The mail server answered {error.smtp_code} and did not take the message.",
        )
    return Failure("failed", f"It was not sent: {type(error).__name__}.")


def failure_of_gateway(log: str) -> Failure:
    """What Apprise's log of one message tells."""
    status = _STATUS.search(log)
    if status is not None and status[1] in _AUTHENTICATION_STATUSES:
        return Failure(
            "authentication", f"Authentication failed: the SMS gateway answered {status[1]}."
        )
    if status is not None:
        return Failure(
            "refused-message",
            f"The SMS gateway answered {status[1]} and did not take the message.",
        )
    for sign, failure in _SIGNS_OF_GATEWAY.items():
        if re.search(sign, log, re.IGNORECASE):
            return failure
    return Failure("failed", "The SMS gateway did not take the message.")
