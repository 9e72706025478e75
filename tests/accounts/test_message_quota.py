"""What one organisation can have sent in a day, to however many addresses."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from accounts.flows.api_keys import issue_api_key
from accounts.flows.notices import warn_of_expiry
from accounts.flows.organisations import add_member, remove_member
from accounts.flows.send_pin import choose_channel
from accounts.flows.send_test_message import send_test_message
from accounts.messages.channels import Channel, SendVia
from accounts.models import (
    AuthEvent,
    AuthEventKind,
    Invitation,
    Membership,
    Organisation,
    Role,
    User,
)
from core.errors import RateLimitedError
from core.http.origin import NOWHERE
from tests.factories import deliver_pin, make_organisation, make_user, work
from tests.servers import MailServer, SmsGateway


def choose_mail(user: User) -> Channel | None:
    now = timezone.now()
    return choose_channel(user.email, Channel.EMAIL, SendVia.EMAIL, now, is_counted=True)


@pytest.fixture
def crowd(acme: Organisation) -> list[User]:
    """Six users of Acme, with addresses and numbers of its choice."""
    return [
        make_user(acme, f"user{number}@example.com", phone=f"+4917012345{number:02d}")
        for number in range(6)
    ]


@pytest.fixture
def mail_server(settings: Any) -> Any:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with MailServer().running() as server:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        yield server


def refused(reason: str) -> int:
    return AuthEvent.objects.filter(kind=AuthEventKind.RATE_LIMITED, reason=reason).count()


def test_codes_go_to_as_many_addresses_as_the_organisation_has_mails_a_day(
    crowd: list[User], mail_server: MailServer, charlie: User, settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 4
    for user in crowd:
        deliver_pin(user.email, SendVia.EMAIL)
    deliver_pin(charlie.email, SendVia.EMAIL)

    recipients = [message["To"] for message in mail_server.messages]
    assert recipients == [user.email for user in crowd[:4]] + [charlie.email]
    assert refused("mails") == 2


def test_codes_go_to_as_many_numbers_as_the_organisation_has_sms_a_day_then_by_mail(
    crowd: list[User], mail_server: MailServer, sms_gateway: SmsGateway, settings: Any
) -> None:
    settings.SMS_URL = sms_gateway.url
    settings.ORGANISATION_SMS_PER_DAY = 4
    for user in crowd:
        deliver_pin(user.email, SendVia.SMS)

    assert [message["to"] for message in sms_gateway.messages] == [u.phone for u in crowd[:4]]
    assert [message["To"] for message in mail_server.messages] == [u.email for u in crowd[4:]]


def test_a_mail_that_is_used_up_is_on_record_once_a_day_for_each_user(
    crowd: list[User], settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 1
    for _ in range(5):
        choose_mail(crowd[0])

    assert refused("mails") == 1


def test_test_messages_count_among_the_mails_of_the_organisation(
    crowd: list[User], settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 2
    outcomes = [
        send_test_message(Channel.EMAIL, user.email, origin=NOWHERE, by=crowd[0], about=user)
        for user in crowd[:3]
    ]

    assert [outcome.is_sent for outcome in outcomes] == [True, True, False]
    assert "ORGANISATION_MAILS_PER_DAY" in outcomes[2].text
    assert len(mail.outbox) == 2


def test_an_address_gets_ten_test_messages_a_day_from_all_senders(
    crowd: list[User], alice: User
) -> None:
    for number in range(10):
        by = crowd[number % 6]
        send_test_message(Channel.EMAIL, alice.email, origin=NOWHERE, by=by, about=alice)

    with pytest.raises(RateLimitedError):
        send_test_message(Channel.EMAIL, alice.email, origin=NOWHERE, by=crowd[0], about=alice)
    assert len(mail.outbox) == 10


def test_invitations_count_among_the_mails_of_the_organisation(
    acme: Organisation, charlie: User, settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 1
    dave = make_user(make_organisation("Initech"), "dave@example.org")
    add_member(acme, email=charlie.email)

    with pytest.raises(RateLimitedError):
        add_member(acme, email=dave.email)
    assert Invitation.objects.count() == 1


def test_one_organisation_does_not_use_up_an_addresss_invitations(
    acme: Organisation, charlie: User
) -> None:
    for _ in range(3):
        add_member(acme, email=charlie.email)
        Invitation.objects.all().delete()
    with pytest.raises(RateLimitedError):
        add_member(acme, email=charlie.email)

    assert add_member(make_organisation("Initech"), email=charlie.email)


def test_an_address_gets_ten_invitations_a_day_over_all(charlie: User) -> None:
    for number in range(10):
        add_member(make_organisation(f"Company {number}"), email=charlie.email)

    with pytest.raises(RateLimitedError):
        add_member(make_organisation("One more"), email=charlie.email)
    assert Invitation.objects.count() == 10


def test_at_most_ten_expiry_notices_are_sent_a_day(acme: Organisation) -> None:
    make_user(acme, "victim@example.net", role=Role.ADMINISTRATOR)
    for number in range(12):
        issue_api_key(acme, name=f"key {number}", expires_at=timezone.now() + timedelta(hours=20))

    warn_of_expiry()
    work()

    assert len(mail.outbox) == 10


def test_users_without_home_share_one_quota(
    acme: Organisation, crowd: list[User], mail_server: MailServer, settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 4
    root = User.objects.create_superuser("root@example.com")
    for user in crowd:
        remove_member(acme, user)
        deliver_pin(user.email, SendVia.EMAIL)
    deliver_pin(root.email, SendVia.EMAIL)

    recipients = [message["To"] for message in mail_server.messages]
    assert recipients == [user.email for user in crowd[:4]] + [root.email]


def test_a_user_without_home_counts_for_the_current_organisation(
    acme: Organisation, globex: Organisation, crowd: list[User], settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 1
    for user in crowd[:2]:
        Membership.objects.create(user=user, organisation=globex)
        remove_member(acme, user)
    sent = [choose_mail(user) for user in crowd[:3]]

    assert sent == [Channel.EMAIL, None, Channel.EMAIL]
