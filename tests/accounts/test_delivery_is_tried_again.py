"""Retries of messages: which, when, and with which code."""

import re
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from accounts.flows.api_keys import issue_api_key
from accounts.flows.check_pin import check_pin
from accounts.flows.notices import warn_of_expiry
from accounts.flows.password_links import request_password_link
from accounts.flows.send_pin import deliver_pin, request_pin
from accounts.flows.users import update_user
from accounts.messages.channels import SendVia
from accounts.models import (
    AuthEvent,
    Organisation,
    PinChallenge,
    PinCode,
    RateCounter,
    User,
)
from core.http.origin import NOWHERE
from jobs.models import Message
from tests.factories import make_device_token, work
from tests.servers import MailServer, SmsGateway, free_port

DEVICE = uuid.uuid4()


@pytest.fixture(autouse=True)
def _at_once(settings: Any) -> None:
    settings.TASK_RETRY_SECONDS = (0, 0, 0)


@pytest.fixture
def gateway(settings: Any, sms_gateway: SmsGateway) -> SmsGateway:
    settings.SMS_URL = sms_gateway.url
    return sms_gateway


@pytest.fixture
def mail_server(settings: Any) -> Iterator[MailServer]:
    with MailServer().running() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        yield server


def code_in(text: str) -> str:
    return re.findall(r"\b\d{6}\b", text)[0]


def codes(mail_server: MailServer) -> list[str]:
    return [code_in(message.get_content()) for message in mail_server.messages]


def delivery() -> tuple[str, int]:
    """The state of the one delivery of a code, and how often it was tried."""
    task = Message.objects.get(task_path=deliver_pin.module_path)
    return task.status, len(task.worker_ids)


def logs_in(user: User, pin: str) -> bool:
    return check_pin(email=user.email, pin=pin, device=DEVICE, label="", origin=NOWHERE) is not None


def asked_ago(age: timedelta) -> None:
    """Lets the one request have been made so long ago."""
    message = Message.objects.get()
    email, channel, send_via, _ = message.arguments["args"]
    asked_at = (timezone.now() - age).isoformat()
    message.arguments["args"] = [email, channel, send_via, asked_at]
    message.save()


def ask(user: User, send_via: SendVia) -> None:
    request_pin(user.email, send_via, NOWHERE)


def test_a_mail_that_was_refused_for_now_is_sent_again(
    alice: User, mail_server: MailServer
) -> None:
    mail_server.recipient_answers = ["451 try again later", "421 too busy"]
    ask(alice, SendVia.EMAIL)
    work()

    assert delivery() == ("SUCCESSFUL", 3)
    assert logs_in(alice, codes(mail_server)[0])


def test_a_permanently_refused_recipient_is_not_retried(
    alice: User, mail_server: MailServer
) -> None:
    mail_server.recipient_answers = ["550 no such user"]
    ask(alice, SendVia.EMAIL)
    work()

    assert delivery() == ("FAILED", 1)
    assert mail_server.messages == []
    reasons = AuthEvent.objects.filter(kind="pin.not-sent").values_list("reason", flat=True)
    assert list(reasons) == ["not sent by email: SMTPRecipientsRefused 550"]


def test_a_permanently_refused_message_is_not_retried(alice: User, mail_server: MailServer) -> None:
    mail_server.answers = ["554 this is spam"]
    ask(alice, SendVia.EMAIL)
    work()

    assert delivery() == ("FAILED", 1)


def test_a_server_that_does_not_listen_is_tried_again(alice: User, settings: Any) -> None:
    settings.TASK_RETRY_SECONDS = (5,)
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()
    ask(alice, SendVia.EMAIL)
    work()

    assert delivery() == ("READY", 1)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_a_gateway_that_cannot_now_is_asked_again(
    alice: User, gateway: SmsGateway, status: int
) -> None:
    gateway.statuses = [status]
    ask(alice, SendVia.SMS)
    work()

    assert delivery() == ("SUCCESSFUL", 2)
    assert logs_in(alice, code_in(gateway.messages[0]["text"]))


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_gateway_that_says_no_is_not_asked_again(
    alice: User, gateway: SmsGateway, status: int
) -> None:
    gateway.statuses = [status]
    ask(alice, SendVia.SMS)
    work()

    assert delivery() == ("FAILED", 1)
    assert gateway.asked == 1


def test_one_channel_is_tried_again_without_the_other_and_with_the_same_code(
    alice: User, gateway: SmsGateway, mail_server: MailServer
) -> None:
    gateway.statuses = [503, 503]
    ask(alice, SendVia.BOTH)
    work()

    assert len(mail_server.messages) == 1
    assert gateway.asked == 3
    assert codes(mail_server) == [code_in(gateway.messages[0]["text"])]
    assert PinCode.objects.count() == 1


def test_a_mail_that_arrived_although_the_answer_was_lost_holds_the_code_of_the_second(
    alice: User, mail_server: MailServer
) -> None:
    mail_server.answers = ["451 taken, but I say no"]
    ask(alice, SendVia.EMAIL)
    work()

    first, second = codes(mail_server)
    assert first == second
    assert logs_in(alice, first)


def test_the_last_attempt_fails_permanently(alice: User, gateway: SmsGateway) -> None:
    gateway.refuses = True
    ask(alice, SendVia.SMS)
    work()

    assert delivery() == ("FAILED", 4)
    assert gateway.asked == 4


def test_each_wait_is_at_least_half_as_long_as_the_settings_say(
    alice: User, gateway: SmsGateway, settings: Any
) -> None:
    settings.TASK_RETRY_SECONDS = (100, 200)
    gateway.refuses = True
    ask(alice, SendVia.SMS)
    began = timezone.now()
    work()

    again_at = Message.objects.get(status="READY").due_at
    assert timedelta(seconds=50) <= again_at - began <= timedelta(seconds=110)


def test_nothing_is_tried_again_after_a_codes_life(
    alice: User, gateway: SmsGateway, settings: Any
) -> None:
    settings.TASK_RETRY_SECONDS = (120,)
    gateway.refuses = True
    ask(alice, SendVia.SMS)
    asked_ago(timedelta(minutes=9))
    work()

    assert delivery() == ("FAILED", 1)


def test_a_request_that_waited_longer_than_a_code_lives_sends_nothing(
    alice: User, settings: Any
) -> None:
    ask(alice, SendVia.EMAIL)
    asked_ago(settings.PIN_LIFETIME)
    work()

    assert Message.objects.get().status == "FAILED"
    assert AuthEvent.objects.get(kind="pin.not-sent").reason == "asked for too long ago"
    assert PinChallenge.objects.count() == 0
    assert mail.outbox == []


def test_a_code_is_valid_from_its_last_sending(alice: User, gateway: SmsGateway) -> None:
    gateway.refuses = True
    ask(alice, SendVia.SMS)
    work()
    PinCode.objects.update(expires_at=timezone.now() + timedelta(minutes=1))
    PinChallenge.objects.update(expires_at=timezone.now() + timedelta(minutes=1))
    gateway.refuses = False
    Message.objects.filter(status="FAILED").update(status="READY")
    work()

    valid_until = timezone.now() + timedelta(minutes=9)
    assert PinCode.objects.get().expires_at > valid_until
    assert PinChallenge.objects.get().expires_at > valid_until


def test_a_code_that_was_used_meanwhile_is_not_sent_again(
    alice: User, gateway: SmsGateway, settings: Any
) -> None:
    settings.TASK_RETRY_SECONDS = (60,)
    gateway.statuses = [503]
    ask(alice, SendVia.BOTH)
    work()
    assert logs_in(alice, code_in(str(mail.outbox[0].body)))
    Message.objects.update(due_at=timezone.now())
    work()

    assert gateway.messages == []
    assert PinCode.objects.count() == 1
    assert not Message.objects.exclude(status="SUCCESSFUL").exists()


def test_a_code_for_an_old_phone_is_not_sent_to_the_new_one(
    acme: Organisation, alice: User, gateway: SmsGateway, settings: Any
) -> None:
    settings.TASK_RETRY_SECONDS = (60,)
    gateway.statuses = [503]
    ask(alice, SendVia.SMS)
    work()
    update_user(acme, alice, phone="+491709999999")
    Message.objects.update(due_at=timezone.now())
    work()

    assert gateway.messages == []


def test_after_guesses_used_up_the_tries_the_next_attempt_sends_a_new_code(
    alice: User, gateway: SmsGateway, settings: Any
) -> None:
    settings.TASK_RETRY_SECONDS = (60,)
    gateway.statuses = [503]
    ask(alice, SendVia.SMS)
    work()
    for _ in range(settings.PIN_TRIES_PER_DEVICE):
        logs_in(alice, "000000")
    Message.objects.update(due_at=timezone.now())
    work()

    assert logs_in(alice, code_in(gateway.messages[0]["text"]))


def test_retries_count_nothing_against_the_limits(alice: User, gateway: SmsGateway) -> None:
    gateway.statuses = [503, 503]
    ask(alice, SendVia.SMS)
    before = dict(RateCounter.objects.values_list("key", "hits"))
    work()
    after = dict(RateCounter.objects.values_list("key", "hits"))

    assert delivery() == ("SUCCESSFUL", 3)
    assert {key: after[key] for key in before} == before
    assert [hits for key, hits in after.items() if "sms-to" in key] == [1]


def test_no_code_is_in_a_tasks_row(alice: User, mail_server: MailServer) -> None:
    mail_server.answers = ["451 not now: {message}"] * 4
    ask(alice, SendVia.EMAIL)
    work()

    rows = str(list(Message.objects.values()))
    assert delivery() == ("FAILED", 4)
    assert codes(mail_server)[0] not in rows


def test_the_notice_of_a_new_device_is_tried_again(alice: User, mail_server: MailServer) -> None:
    mail_server.recipient_answers = ["451 try again later"]
    make_device_token(alice)
    work()

    assert len(mail_server.messages) == 1
    assert len(Message.objects.get().worker_ids) == 2


def test_a_password_link_that_is_tried_again_counts_once(
    bob: User, mail_server: MailServer, settings: Any
) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    settings.ORGANISATION_MAILS_PER_DAY = 1
    mail_server.recipient_answers = ["451 try again later"]
    request_password_link(bob.email, NOWHERE)
    work()

    assert [str(message["To"]) for message in mail_server.messages] == [bob.email]
    assert len(Message.objects.get().worker_ids) == 2


def test_one_administrators_warning_is_tried_again_without_the_others(
    acme: Organisation, bob: User, mail_server: MailServer
) -> None:
    update_user(acme, bob, name="Bob")
    carol = User.objects.create_user("carol@example.com")
    carol.memberships.create(organisation=acme, role="administrator")
    issue_api_key(acme, name="till", expires_at=timezone.now() + timedelta(days=5))
    mail_server.recipient_answers = ["451 try again later"]
    told = warn_of_expiry()
    work()

    assert told == 1
    assert sorted(str(message["To"]) for message in mail_server.messages) == [
        "bob@example.com",
        "carol@example.com",
    ]


def test_no_warning_is_sent_of_a_key_that_was_revoked_meanwhile(
    acme: Organisation, bob: User, mail_server: MailServer
) -> None:
    key = issue_api_key(acme, name="till", expires_at=timezone.now() + timedelta(days=5)).api_key
    warn_of_expiry()
    key.revoked_at = timezone.now()
    key.save()
    work()

    assert mail_server.messages == []
