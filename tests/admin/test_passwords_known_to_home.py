"""A password that a home may have set does not open the organisations that its user joins later."""

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core import mail
from django.test import Client
from django.urls import reverse

from accounts.flows.invite_administrator import invite_administrator
from accounts.flows.organisations import accept_invitation, add_member, remove_member
from accounts.flows.users import update_user
from accounts.models import AuthEvent, Organisation, Role, User
from core.errors import NotFoundError
from core.http.origin import NOWHERE
from tests.admin.pages import list_of, logged_in, page_of
from tests.admin.password_mails import links_mailed, use

KNOWN = "a password that Globex knows"


@pytest.fixture
def charlie(charlie: User) -> User:
    """Administrator of Globex and staff, with a password that Globex has set."""
    charlie.set_password(KNOWN)
    charlie.save(update_fields=["password"])
    return charlie


def log_in(client: Client, user: User) -> Any:
    return client.post(reverse("admin:login"), {"username": user.email, "password": KNOWN})


def invite_and_accept(acme: Organisation, user: User, by: User) -> None:
    invite_administrator(acme, email=user.email, by=by, origin=NOWHERE)
    accept_invitation(user, user.invitations.get().pk)


def test_a_password_of_the_home_does_not_open_an_organisation_joined_as_administrator(
    acme: Organisation, bob: User, charlie: User, client: Client
) -> None:
    invite_and_accept(acme, charlie, bob)

    assert log_in(client, charlie).status_code == 200
    assert client.get(page_of(acme)).status_code == 302
    assert authenticate(username=charlie.email, password=KNOWN) is None


def test_a_login_with_a_password_of_the_home_ends(
    acme: Organisation, bob: User, charlie: User, client: Client
) -> None:
    log_in(client, charlie)
    before = client.get(list_of(Organisation)).status_code
    invite_and_accept(acme, charlie, bob)

    assert (before, client.get(page_of(acme)).status_code) == (200, 302)


def test_the_user_sets_a_new_password_by_a_link(
    acme: Organisation, bob: User, charlie: User
) -> None:
    invite_and_accept(acme, charlie, bob)
    (link,) = links_mailed()

    assert use(link).status_code == 302
    assert authenticate(username=charlie.email, password="a new password 1") == charlie


def test_the_end_of_the_password_is_recorded(
    acme: Organisation, bob: User, charlie: User, globex: Organisation
) -> None:
    invite_and_accept(acme, charlie, bob)

    event = AuthEvent.objects.get(kind="password.set")
    assert (event.reason, event.organisation) == ("removed", globex)


def test_a_password_of_the_home_ends_for_a_plain_member_too(
    acme: Organisation, charlie: User
) -> None:
    add_member(acme, email=charlie.email, role=Role.MEMBER)

    accept_invitation(charlie, charlie.invitations.get().pk)

    assert authenticate(username=charlie.email, password=KNOWN) is None


def test_a_password_of_who_is_not_staff_yet_ends_too(acme: Organisation, charlie: User) -> None:
    charlie.is_staff = False
    charlie.save(update_fields=["is_staff"])
    add_member(acme, email=charlie.email, role=Role.ADMINISTRATOR)

    accept_invitation(charlie, charlie.invitations.get().pk)

    charlie.refresh_from_db()
    assert not charlie.has_usable_password()
    assert links_mailed() == []


def test_a_password_of_a_former_home_ends(
    acme: Organisation, globex: Organisation, bob: User, charlie: User
) -> None:
    remove_member(globex, charlie)
    charlie.refresh_from_db()

    invite_and_accept(acme, charlie, bob)

    assert authenticate(username=charlie.email, password=KNOWN) is None


def test_who_takes_the_address_of_another_does_not_enter_the_admin_that_invites_it(
    acme: Organisation, bob: User, charlie: User
) -> None:
    """No home could set this password, but nobody has shown that the mailbox is the user's."""
    other = Organisation.objects.create(name="Other")
    add_member(other, email=charlie.email)
    accept_invitation(charlie, charlie.invitations.get().pk)
    charlie.set_password(KNOWN)
    charlie.save(update_fields=["password"])
    thief = logged_in(charlie)
    typed = {"email": "frank@example.com", "phone": "", "password": KNOWN}
    assert thief.post(reverse("admin:own_login"), typed).status_code == 302
    charlie.refresh_from_db()

    invite_and_accept(acme, charlie, bob)

    assert thief.get(page_of(acme)).status_code == 302
    assert authenticate(username=charlie.email, password=KNOWN) is None
    [link] = links_mailed()
    assert [each.to for each in mail.outbox if link in each.body] == [["frank@example.com"]]


@pytest.mark.parametrize("role", Role.values)
def test_a_home_that_changes_the_address_cannot_accept_for_the_user(
    acme: Organisation, globex: Organisation, charlie: User, role: str
) -> None:
    charlie.is_staff = False
    charlie.save(update_fields=["is_staff"])
    add_member(acme, email=charlie.email, role=role)
    update_user(globex, charlie, email="globex@example.org")

    with pytest.raises(NotFoundError):
        accept_invitation(charlie, charlie.invitations.get().pk)

    assert not charlie.memberships.filter(organisation=acme).exists()
