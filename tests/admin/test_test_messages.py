"""Test messages sent to real servers: the page shows the outcome and no secret."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core import mail
from django.test import Client
from django.urls import reverse

from accounts.models import AuthEvent, AuthEventKind, Organisation, User
from tests.admin.pages import page_of, text_of
from tests.servers import MailServer, SilentServer, SmsGateway, free_port

DELIVERY = reverse("admin:message_delivery")
EMAIL, SMS = {"channel": "email"}, {"channel": "sms"}
TEST_EVENTS = (AuthEventKind.TEST_MESSAGE_SENT, AuthEventKind.TEST_MESSAGE_NOT_SENT)


@pytest.fixture
def mail_server(settings: Any) -> Iterator[MailServer]:
    with MailServer().running() as server:
        send_mail_to(settings, server.port)
        yield server


def send_mail_to(settings: Any, port: int) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    settings.EMAIL_TIMEOUT = 1


def send_to(client: Client, user: User, form: dict[str, str]) -> str:
    response = client.post(page_of(user, "send_test_message"), form)
    assert response.status_code == 200
    return text_of(response)


def outcome() -> tuple[str, str, str]:
    """Kind, reason and address of the only recorded test message."""
    event = AuthEvent.objects.get(kind__in=TEST_EVENTS)
    return event.kind, event.reason, event.email


def test_the_page_asks_for_the_channel_and_sends_nothing(as_bob: Client, alice: User) -> None:
    response = as_bob.get(page_of(alice, "send_test_message"))

    assert "E-mail, to alice@example.com" in text_of(response)
    assert "SMS, to +491701234567" in text_of(response)
    assert mail.outbox == []


def test_the_mail_server_accepts_the_message(
    as_bob: Client, alice: User, mail_server: MailServer
) -> None:
    text = send_to(as_bob, alice, EMAIL)

    assert "The mail server accepted the message to alice@example.com" in text
    [message] = mail_server.messages
    assert message["To"] == "alice@example.com"
    assert message["Subject"] == "Test message from Moonhook"
    assert outcome() == ("test-message.sent", "email", "alice@example.com")


def test_the_audit_names_who_sent_it_and_the_users_organisation(
    as_bob: Client, bob: User, alice: User, acme: Organisation
) -> None:
    send_to(as_bob, alice, EMAIL)

    event = AuthEvent.objects.get(kind=AuthEventKind.TEST_MESSAGE_SENT)
    assert (event.user, event.organisation) == (bob, acme)


def test_a_mail_server_that_refuses_the_connection(
    as_bob: Client, alice: User, settings: Any
) -> None:
    send_mail_to(settings, free_port())

    assert "refused the connection" in send_to(as_bob, alice, EMAIL)
    assert outcome() == ("test-message.not-sent", "email: refused", "alice@example.com")


def test_a_mail_server_that_does_not_answer(as_bob: Client, alice: User, settings: Any) -> None:
    with SilentServer().running() as server:
        send_mail_to(settings, server.port)
        text = send_to(as_bob, alice, EMAIL)

    assert "The mail server did not answer in time." in text


def test_a_mail_server_with_an_unknown_host(as_bob: Client, alice: User, settings: Any) -> None:
    send_mail_to(settings, 25)
    settings.EMAIL_HOST = "mail.invalid"

    assert "host name of the mail server cannot be resolved" in send_to(as_bob, alice, EMAIL)


def test_a_wrong_mail_server_password_is_reported_but_not_shown(
    as_bob: Client, alice: User, settings: Any
) -> None:
    with MailServer(password="right").running() as server:
        send_mail_to(settings, server.port)
        settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "moonhook", "a wrong password"
        text = send_to(as_bob, alice, EMAIL)

    assert "Authentication failed" in text
    assert "a wrong password" not in text
    assert server.messages == []


def test_a_mail_server_without_encryption(
    as_bob: Client, alice: User, mail_server: MailServer, settings: Any
) -> None:
    settings.EMAIL_USE_TLS = True

    assert "does not offer the encryption or login" in send_to(as_bob, alice, EMAIL)
    assert mail_server.messages == []


def test_without_a_mail_server_the_page_names_the_file(
    as_bob: Client, alice: User, settings: Any, tmp_path: Path
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)

    text = send_to(as_bob, alice, EMAIL)

    [file] = tmp_path.iterdir()
    assert str(file) in text
    assert "Test message from Moonhook" in file.read_text()


def test_the_gateway_accepts_the_message(
    as_bob: Client, alice: User, sms_gateway: SmsGateway, settings: Any
) -> None:
    settings.SMS_URL = sms_gateway.url

    text = send_to(as_bob, alice, SMS)

    assert "The SMS gateway accepted the message to +491701234567" in text
    assert [message["to"] for message in sms_gateway.messages] == ["+491701234567"]
    assert outcome() == ("test-message.sent", "sms", "alice@example.com")


def test_a_gateway_that_refuses(
    as_bob: Client, alice: User, sms_gateway: SmsGateway, settings: Any
) -> None:
    settings.SMS_URL, sms_gateway.refuses = sms_gateway.url, True

    assert "The SMS gateway answered 503" in send_to(as_bob, alice, SMS)
    assert outcome() == ("test-message.not-sent", "sms: refused-message", "alice@example.com")


def test_an_unreachable_gateway_is_reported_without_its_password(
    as_bob: Client, alice: User, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.SMS_URL = f"json://moonhook:a-gateway-secret@127.0.0.1:{free_port()}/?:to={{phone}}"

    text = send_to(as_bob, alice, SMS)

    assert "SMS gateway&#x27;s host refused the connection" in text
    assert "a-gateway-secret" not in text + caplog.text
    assert "a-gateway-secret" not in str(list(AuthEvent.objects.values()))


def test_a_gateway_that_does_not_answer(as_bob: Client, alice: User, settings: Any) -> None:
    with SilentServer().running() as server:
        settings.SMS_URL = f"json://127.0.0.1:{server.port}/?:to={{phone}}&rto=0.5&cto=0.5"
        text = send_to(as_bob, alice, SMS)

    assert "The SMS gateway did not answer in time." in text


def test_without_a_gateway_the_page_names_the_file(
    as_bob: Client, alice: User, settings: Any, tmp_path: Path
) -> None:
    settings.SMS_URL, settings.OUTBOX_DIR = None, tmp_path

    text = send_to(as_bob, alice, SMS)

    [file] = tmp_path.iterdir()
    assert str(file) in text
    assert json.loads(file.read_text())["to"] == "+491701234567"


def test_a_user_without_a_phone_gets_no_sms(
    as_bob: Client, bob: User, settings: Any, sms_gateway: SmsGateway
) -> None:
    settings.SMS_URL = sms_gateway.url

    assert "The profile has no phone number." in send_to(as_bob, bob, SMS)
    assert sms_gateway.messages == []


def test_sms_switched_off(as_bob: Client, alice: User, settings: Any) -> None:
    settings.SMS_URL = "off"

    assert "SMS is off (SMS_URL)" in send_to(as_bob, alice, SMS)
    assert outcome()[1] == "sms: sms-off"


def test_the_sixth_sms_of_a_day_is_not_sent(
    as_bob: Client, alice: User, sms_gateway: SmsGateway, settings: Any
) -> None:
    settings.SMS_URL = sms_gateway.url
    texts = [send_to(as_bob, alice, SMS) for _ in range(6)]

    assert "accepted the message" in texts[4]
    assert "five SMS of today" in texts[5]
    assert len(sms_gateway.messages) == 5


def test_the_daily_budget_holds(
    as_bob: Client, alice: User, sms_gateway: SmsGateway, settings: Any
) -> None:
    settings.SMS_URL, settings.SMS_DAILY_BUDGET = sms_gateway.url, 1
    texts = [send_to(as_bob, alice, SMS) for _ in range(2)]

    assert "SMS_DAILY_BUDGET" in texts[1]
    assert len(sms_gateway.messages) == 1


def test_no_sms_to_a_country_that_is_not_served(
    as_bob: Client, alice: User, sms_gateway: SmsGateway, settings: Any
) -> None:
    settings.SMS_URL, settings.SMS_COUNTRIES = sms_gateway.url, frozenset({"AT"})

    assert "SMS_COUNTRIES does not allow" in send_to(as_bob, alice, SMS)
    assert sms_gateway.messages == []


def test_too_many_test_messages_have_to_wait(
    as_bob: Client, alice: User, bob: User, erin: User
) -> None:
    texts = [send_to(as_bob, whom, EMAIL) for whom in [alice] * 10 + [bob] * 10 + [erin]]

    assert "accepted the message" in texts[19]
    assert "Too many test messages" in texts[20]
    assert len(mail.outbox) == 20


@pytest.mark.parametrize("form", [EMAIL, SMS])
def test_bob_sends_none_to_a_shared_user(as_bob: Client, dora: User, form: dict[str, str]) -> None:
    response = as_bob.post(page_of(dora, "send_test_message"), form)

    assert response.status_code == 403
    assert "+491709999999" not in text_of(response)
    assert mail.outbox == []
    assert not AuthEvent.objects.filter(kind__in=TEST_EVENTS).exists()


def test_bob_sends_none_to_globex(as_bob: Client, charlie: User) -> None:
    response = as_bob.post(page_of(charlie, "send_test_message"), EMAIL)

    assert response.status_code in (403, 404)
    assert mail.outbox == []


def test_root_sees_the_settings_without_the_passwords(
    as_root: Client, mail_server: MailServer, settings: Any
) -> None:
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "moonhook", "the mail password"
    settings.SMS_URL = "twilio://AC0123:the-gateway-token@15550100/{phone}"

    text = text_of(as_root.get(DELIVERY))

    assert "127.0.0.1" in text
    assert str(mail_server.port) in text
    assert django_settings.DEFAULT_FROM_EMAIL.split("<")[1].rstrip(">") in text
    assert "twilio" in text
    assert "the mail password" not in text
    assert "the-gateway-token" not in text
    assert "AC0123" not in text


def test_root_sends_to_a_typed_address(as_root: Client, mail_server: MailServer) -> None:
    response = as_root.post(DELIVERY, {"to": " Ops@Example.com "})

    assert "The mail server accepted the message to Ops@Example.com" in text_of(response)
    assert [message["To"] for message in mail_server.messages] == ["Ops@Example.com"]
    assert outcome() == ("test-message.sent", "email", "Ops@Example.com")


def test_root_sends_to_a_typed_number(
    as_root: Client, sms_gateway: SmsGateway, settings: Any
) -> None:
    settings.SMS_URL = sms_gateway.url

    response = as_root.post(DELIVERY, {"to": "+49 170 7654321"})

    assert "The SMS gateway accepted the message" in text_of(response)
    assert [message["to"] for message in sms_gateway.messages] == ["+491707654321"]


@pytest.mark.parametrize("typed", ["", "0170", "@", "a@b\r\nBcc: c@d.example"])
def test_an_invalid_address_is_refused_at_the_field(as_root: Client, typed: str) -> None:
    response = as_root.post(DELIVERY, {"to": typed})

    assert response.status_code == 200
    assert mail.outbox == []
    assert not AuthEvent.objects.filter(kind__in=TEST_EVENTS).exists()


def test_message_delivery_is_for_superusers(as_bob: Client, as_erin: Client) -> None:
    responses = [as_bob.get(DELIVERY), as_erin.get(DELIVERY)]
    responses.append(as_bob.post(DELIVERY, {"to": "bob@example.com"}))

    assert [response.status_code for response in responses] == [403, 403, 403]
    assert mail.outbox == []
    assert DELIVERY not in text_of(as_bob.get(reverse("admin:index")))


def test_the_menu_of_root_lists_message_delivery(as_root: Client) -> None:
    assert DELIVERY in text_of(as_root.get(reverse("admin:index")))
