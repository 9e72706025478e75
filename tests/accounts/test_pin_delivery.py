import json
import re
from pathlib import Path
from smtplib import SMTPDataError

import pytest
from django.core import mail
from django.core.mail import EmailMessage
from django.test import override_settings

from accounts.flows.send_pin import request_pin
from accounts.messages.channels import SendVia
from accounts.models import PinChallenge, User
from core.errors import DeliveryError, TryAgainError
from core.http.origin import Origin
from jobs.models import Message
from tests.factories import deliver_pin, work
from tests.servers import SmsGateway


def code_in(text: str) -> str:
    return re.findall(r"\b\d{6}\b", text)[0]


def only(messages: list[EmailMessage]) -> EmailMessage:
    assert len(messages) == 1
    return messages[0]


def test_a_request_only_enqueues_the_canonical_address_and_the_channel(alice: User) -> None:
    request_pin(" ALICE@example.com", SendVia.SMS, Origin(request_id="abc"))

    task = Message.objects.get()
    assert task.arguments == {
        "args": ["alice@example.com", "sms", "sms", task.arguments["args"][3]],
        "kwargs": {"device": "", "request_id": "abc"},
    }
    assert PinChallenge.objects.count() == 0


def test_the_mail_holds_the_code_and_the_subject_does_not(alice: User) -> None:
    deliver_pin(alice.email, SendVia.EMAIL)

    message = only(mail.outbox)
    assert message.to == [alice.delivery_email]
    assert code_in(str(message.body))
    assert not re.search(r"\d", message.subject)


def test_an_sms_reaches_the_gateway(alice: User, sms_gateway: SmsGateway) -> None:
    with override_settings(SMS_URL=sms_gateway.url):
        deliver_pin(alice.email, SendVia.SMS)

    [message] = sms_gateway.messages
    assert message["to"] == alice.phone
    assert code_in(message["text"])
    assert mail.outbox == []


def test_both_means_the_same_code_on_both_ways(alice: User, sms_gateway: SmsGateway) -> None:
    with override_settings(SMS_URL=sms_gateway.url):
        deliver_pin(alice.email, SendVia.BOTH)

    assert code_in(str(only(mail.outbox).body)) == code_in(sms_gateway.messages[0]["text"])


def test_sms_without_a_phone_goes_by_mail(bob: User, sms_gateway: SmsGateway) -> None:
    with override_settings(SMS_URL=sms_gateway.url):
        deliver_pin(bob.email, SendVia.SMS)

    assert only(mail.outbox).to == [bob.email]
    assert sms_gateway.messages == []


def test_a_mail_that_takes_the_place_of_an_sms_has_a_task_of_its_own(
    bob: User, sms_gateway: SmsGateway
) -> None:
    with override_settings(SMS_URL=sms_gateway.url):
        request_pin(bob.email, SendVia.SMS, Origin(request_id="abc"))
        work()

    sms, email = Message.objects.order_by("pk")
    assert [sms.queue, email.queue] == ["sms", "email"]
    assert email.arguments["kwargs"] == {"device": "", "request_id": "abc"}
    assert (sms.status, email.status) == ("SUCCESSFUL", "SUCCESSFUL")
    assert code_in(str(only(mail.outbox).body))
    assert sms_gateway.messages == []


def test_a_refusing_gateway_fails_the_delivery_but_not_the_mail(
    alice: User, sms_gateway: SmsGateway
) -> None:
    sms_gateway.refuses = True

    with override_settings(SMS_URL=sms_gateway.url), pytest.raises(TryAgainError) as raised:
        deliver_pin(alice.email, SendVia.BOTH)

    assert str(raised.value) == "not sent by sms: the gateway gave status 503"
    assert len(mail.outbox) == 1


def test_without_a_gateway_sms_are_written_to_the_outbox(alice: User, tmp_path: Path) -> None:
    with override_settings(SMS_URL=None, OUTBOX_DIR=tmp_path / "outbox"):
        deliver_pin(alice.email, SendVia.SMS)

    [path] = (tmp_path / "outbox").iterdir()
    message = json.loads(path.read_text())
    assert message["to"] == alice.phone
    assert code_in(message["text"])
    assert path.stat().st_mode & 0o077 == 0


def test_a_server_that_quotes_the_message_brings_no_code_into_the_log(
    alice: User, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    quoted: list[str] = []

    def refuse(self: object, messages: list[EmailMessage]) -> None:
        quoted.append(str(messages[0].body))
        raise SMTPDataError(554, quoted[0].encode())

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", refuse)
    with pytest.raises(DeliveryError):
        deliver_pin(alice.email, SendVia.EMAIL)

    assert "was not sent by email: SMTPDataError 554" in caplog.text
    assert code_in(quoted[0]) not in caplog.text


def test_no_code_is_logged(alice: User, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    deliver_pin(alice.email, SendVia.EMAIL)

    assert code_in(str(mail.outbox[0].body)) not in caplog.text
