"""Sending a test message, to see whether messages arrive."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.template.loader import render_to_string

from accounts.audit import Subject, record
from accounts.messages.channels import SMS_OFF, Channel
from accounts.messages.delivering import Failure, failure_of_email
from accounts.messages.email import send_email
from accounts.messages.quotas import SmsRefusal, claim_sms, may_send_mail, organisation_that_pays
from accounts.messages.sms import SmsRefusedError, send_sms
from accounts.models import AuthEventKind, SubjectKind, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.http.origin import Origin


class MessageOutcome(NamedTuple):
    """Whether the message was sent, and a text for the admin page, without secrets."""

    is_sent: bool
    text: str


_REFUSALS = {
    SmsRefusal.COUNTRY: "SMS_COUNTRIES does not allow SMS to the country of this number.",
    SmsRefusal.NUMBER: "This number has received its five SMS of today. Try again tomorrow.",
    SmsRefusal.ORGANISATION: (
        "The organisation has used up its SMS of today (ORGANISATION_SMS_PER_DAY). "
        "Try again tomorrow."
    ),
    SmsRefusal.BUDGET: "Today's SMS are used up (SMS_DAILY_BUDGET). Try again tomorrow.",
}
_MAILS_USED_UP = Failure(
    "organisation-limit",
    "The organisation has used up its e-mails of today (ORGANISATION_MAILS_PER_DAY). "
    "Try again tomorrow.",
)


class _NotSentError(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


def send_test_message(
    channel: Channel, to: str, *, origin: Origin, by: User, about: User | None = None
) -> MessageOutcome:
    """Sends a message immediately, the way PIN codes are sent, and waits for the outcome.

    ``to`` is an e-mail address or an E.164 number, empty if the user has none; ``about`` is the
    user it belongs to, if any. Counts towards the same quotas as other messages. Raises
    ``RateLimitedError`` for too many test messages of one sender or to one recipient.
    """
    hit([windows.TEST_MESSAGES_OF_PERSON], "test-message", str(by.pk))
    hit([windows.TEST_MESSAGES_TO_ADDRESS], "test-message-to", to)
    organisation_id = None if about is None else organisation_that_pays(about)
    try:
        file = _SENDERS[channel](to, organisation_id)
    except _NotSentError as error:
        outcome = MessageOutcome(is_sent=False, text=error.failure.text)
        reason = f"{channel}: {error.failure.code}"
    else:
        outcome = MessageOutcome(is_sent=True, text=_success(channel, to, file))
        reason = channel.value
    sent, not_sent = AuthEventKind.TEST_MESSAGE_SENT, AuthEventKind.TEST_MESSAGE_NOT_SENT
    kind = sent if outcome.is_sent else not_sent
    if about is None:
        recipient = Subject(SubjectKind.ADDRESS, "", _shown(channel, to))
        record(kind, origin, by=by, about=recipient, email=_shown(channel, to), reason=reason)
    else:
        record(kind, origin, user=about, by=by, reason=reason)
    return outcome


def _send_email(address: str, organisation_id: UUID | None) -> Path | None:
    if not may_send_mail(organisation_id):
        raise _NotSentError(_MAILS_USED_UP)
    try:
        return send_email(address, "test_email", {})
    except Exception as error:  # noqa: BLE001  (mail backends raise anything)
        raise _NotSentError(failure_of_email(error)) from None


def _send_sms(phone: str, organisation_id: UUID | None) -> Path | None:
    if settings.SMS_URL == SMS_OFF:
        raise _NotSentError(Failure("sms-off", "SMS is off (SMS_URL); codes are sent by e-mail."))
    if not phone:
        raise _NotSentError(Failure("no-phone", "The profile has no phone number."))
    refusal = claim_sms(phone, organisation_id)
    if refusal is not None:
        raise _NotSentError(Failure(refusal.value, _REFUSALS[refusal]))
    text = render_to_string("messages/test_sms.txt", {"public_url": settings.PUBLIC_URL}).strip()
    try:
        return send_sms(phone, text)
    except SmsRefusedError as error:
        raise _NotSentError(error.failure) from None


_SENDERS: dict[Channel, Callable[[str, UUID | None], Path | None]] = {
    Channel.EMAIL: _send_email,
    Channel.SMS: _send_sms,
}


def _success(channel: Channel, to: str, file: Path | None) -> str:
    if file is not None:
        return f"Written to {file}. Without EMAIL_URL and SMS_URL messages go to the outbox."
    server = "mail server" if channel is Channel.EMAIL else "SMS gateway"
    return f"The {server} accepted the message to {to}. If it does not arrive, look there next."


def _shown(channel: Channel, to: str) -> str:
    """The recipient in the audit log, which does not keep a typed phone number."""
    return to if channel is Channel.EMAIL else "(a phone)"
