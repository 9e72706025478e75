"""The maker of a user or a key chooses its name: a mail shows it as a name and nothing more."""

from datetime import timedelta

import pytest
from django.core import mail
from django.utils import timezone

from accounts.flows.api_keys import issue_api_key
from accounts.flows.notices import send_new_device_notice, warn_of_expiry
from accounts.flows.organisations import add_member
from accounts.flows.users import update_user
from accounts.messages.channels import SendVia
from accounts.models import Organisation, User
from tests.factories import deliver_pin, make_device_token, work

NAME = "Ann\r\n\r\nYour account is locked.\r\nGo to https://evil.example/login"
SHOWN = "Ann Your account is locked. Go to https evil example login"


@pytest.fixture
def ann(alice: User, acme: Organisation) -> User:
    return update_user(acme, alice, name=NAME)


def test_the_mail_with_a_code_shows_the_name_on_one_line_without_a_link(ann: User) -> None:
    deliver_pin(ann.email, SendVia.EMAIL)

    [message] = mail.outbox
    assert str(message.body).startswith(f"Hello {SHOWN},\n")


def test_the_notice_of_a_device_does_too(ann: User) -> None:
    send_new_device_notice.call(str(make_device_token(ann).device_token.pk), "192.0.2.7")

    [message] = mail.outbox
    assert str(message.body).startswith(f"Hello {SHOWN},\n")


def test_the_mail_of_an_invitation_does_too(ann: User, globex: Organisation) -> None:
    add_member(globex, email=ann.email)
    work()

    [message] = mail.outbox
    assert str(message.body).startswith(f"Hello {SHOWN},\n")


def test_the_warning_of_a_key_with_several_lines_in_its_name_arrives(
    acme: Organisation, bob: User
) -> None:
    name = "till\r\nBcc: eve@example.com"
    issue_api_key(acme, name=name, expires_at=timezone.now() + timedelta(days=5))
    warn_of_expiry()
    work()

    [message] = mail.outbox
    assert message.to == [bob.delivery_email]
    assert message.subject.startswith("The API key “till Bcc eve example com” expires on ")
    assert "“till Bcc eve example com”" in message.body
