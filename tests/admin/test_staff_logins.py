"""Administrators against each other; taking access away; changing the own e-mail and phone."""

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core import mail
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django_otp.plugins.otp_static.models import StaticDevice

from accounts.flows.second_factor import begin_enrolment, confirm_enrolment, has_second_factor
from accounts.flows.users import change_any_user, locked
from accounts.models import AuthEvent, Organisation, Role, User
from core.errors import ForbiddenError
from core.http.origin import NOWHERE
from tests import factories
from tests.admin.pages import CONFIRMED, logged_in, page_of, text_of
from tests.admin.password_mails import links_mailed, use
from tests.admin.second_factors import code_of
from tests.admin.test_users import password_page, profile
from tests.factories import work
from tests.written import nothing_written

OWN = reverse("admin:own_login")
PASSWORD = "a password of gail"
EVE = "eve@example.com"


@pytest.fixture
def gail(acme: Organisation) -> User:
    """Another administrator of Acme, with a password and a phone."""
    gail = factories.make_user(
        acme, "gail@example.com", name="Gail", phone="+4915100000000", role=Role.ADMINISTRATOR
    )
    gail.is_staff = True
    gail.set_password(PASSWORD)
    gail.save()
    return gail


@pytest.fixture
def as_gail(gail: User) -> Client:
    return logged_in(gail)


def action_of(user: User, name: str) -> str:
    return reverse(f"admin:accounts_user_{name}", args=[user.pk])


def turn_on_second_factor(user: User) -> None:
    device = begin_enrolment(user)
    device.confirmed = True
    device.save()


def told() -> list[tuple[list[str], str]]:
    work()
    return [(message.to, str(message.body)) for message in mail.outbox]


# --- Administrators against each other ------------------------------------------------------------


@pytest.mark.parametrize("change", [{"email": EVE}, {"phone": "+4915199999999"}])
def test_an_administrator_cannot_change_the_login_of_another(
    as_bob: Client, gail: User, change: dict[str, str]
) -> None:
    before = User.objects.values().get(pk=gail.pk)
    page = text_of(as_bob.get(page_of(gail)))
    response = as_bob.post(page_of(gail), profile(gail, **change))

    assert response.status_code == 302
    assert User.objects.values().get(pk=gail.pk) == before
    assert 'name="email"' not in page
    assert 'name="phone"' not in page
    assert "alone changes their e-mail, phone and password" in page
    assert told() == []


def test_an_administrator_cannot_set_the_password_of_another(as_bob: Client, gail: User) -> None:
    form = {"password1": "known to bob 1", "password2": "known to bob 1", "usable_password": "true"}
    with nothing_written():
        answers = [as_bob.get(password_page(gail)), as_bob.post(password_page(gail), form)]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert password_page(gail) not in text_of(as_bob.get(page_of(gail)))


def test_an_administrator_cannot_change_the_own_login_without_the_password(
    as_bob: Client, bob: User
) -> None:
    form = {"password1": "known to bob 1", "password2": "known to bob 1", "usable_password": "true"}
    before = User.objects.values().get(pk=bob.pk)
    as_bob.post(page_of(bob), profile(bob, email=EVE))
    refused = as_bob.post(password_page(bob), form)

    assert refused.status_code == 403
    assert User.objects.values().get(pk=bob.pk) == before


@pytest.mark.parametrize("change", [{"email": EVE}, {"phone": "+4915199999999"}])
def test_a_superuser_does_not_change_the_login_of_staff_either(
    as_root: Client, gail: User, change: dict[str, str]
) -> None:
    before = User.objects.values().get(pk=gail.pk)
    page = text_of(as_root.get(page_of(gail)))
    as_root.post(page_of(gail), profile(gail, is_staff="on", **change))

    assert User.objects.values().get(pk=gail.pk) == before
    assert 'name="email"' not in page
    assert 'name="phone"' not in page
    assert "alone changes their e-mail and phone" in page
    assert told() == []


def test_a_superuser_does_not_change_the_login_of_staff_while_taking_the_access(
    as_root: Client, gail: User
) -> None:
    as_root.post(page_of(gail), profile(gail, email=EVE))

    gail.refresh_from_db()
    assert (gail.email, gail.is_staff) == ("gail@example.com", False)


def test_a_form_opened_before_the_user_became_staff_changes_no_login(
    root: User, gail: User
) -> None:
    before = User.objects.values().get(pk=gail.pk)

    with transaction.atomic(), pytest.raises(ForbiddenError):
        change_any_user(locked(gail), by=root, origin=NOWHERE, name="Eve", email=EVE)

    assert User.objects.values().get(pk=gail.pk) == before


def test_a_superuser_changes_the_login_of_a_user_without_access(
    as_root: Client, alice: User
) -> None:
    response = as_root.post(page_of(alice), profile(alice, email="new@example.com"))

    alice.refresh_from_db()
    assert (response.status_code, alice.email) == (302, "new@example.com")
    assert [to for to, _ in told()] == [["alice@example.com"], ["new@example.com"]]


def test_an_administrator_sends_a_link_to_the_address_that_is_there(
    as_bob: Client, gail: User
) -> None:
    as_bob.post(page_of(gail), profile(gail, email=EVE))
    asked = as_bob.get(action_of(gail, "send_password_link"))
    assert links_mailed() == []
    sent = as_bob.post(action_of(gail, "send_password_link"), CONFIRMED)

    assert (asked.status_code, sent.status_code) == (200, 302)
    [link] = links_mailed()
    assert [message.to for message in mail.outbox] == [["gail@example.com"]]
    assert link not in text_of(as_bob.get(page_of(gail)))
    assert authenticate(username=gail.email, password=PASSWORD) == gail


@pytest.mark.parametrize("name", ["send_password_link", "take_admin_access"])
def test_other_organisations_and_plain_users_have_no_such_action(
    as_bob: Client, alice: User, charlie: User, name: str
) -> None:
    with nothing_written():
        answers = [as_bob.post(action_of(user, name), CONFIRMED) for user in (alice, charlie)]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert told() == []


def test_too_many_links_to_an_address_are_refused(as_bob: Client, gail: User) -> None:
    answers = [as_bob.post(action_of(gail, "send_password_link"), CONFIRMED) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [302, 302, 302, 429]
    assert len(links_mailed()) == 3


# --- Taking access away ---------------------------------------------------------------------------


def take_away_as_home(client: Client, user: User) -> Any:
    return client.post(action_of(user, "take_admin_access"), CONFIRMED)


def test_home_takes_access_away_with_password_and_second_factor(
    as_bob: Client, as_gail: Client, gail: User
) -> None:
    turn_on_second_factor(gail)
    asked = as_bob.get(action_of(gail, "take_admin_access"))
    was = User.objects.get(pk=gail.pk).is_staff
    response = take_away_as_home(as_bob, gail)

    gail.refresh_from_db()
    assert (asked.status_code, was, response.status_code) == (200, True, 302)
    assert (gail.is_staff, gail.has_usable_password(), has_second_factor(gail)) == (False,) * 3
    assert as_gail.get(reverse("admin:index")).status_code == 302
    [(to, body)] = told()
    assert to == ["gail@example.com"]
    assert "Your login to the admin was taken away" in body
    event = AuthEvent.objects.get(kind="staff.revoked")
    assert (event.subject_id, event.actor_label) == (str(gail.pk), "bob@example.com")


def test_a_superuser_who_unsets_staff_ends_password_and_second_factor_too(
    as_root: Client, gail: User
) -> None:
    turn_on_second_factor(gail)
    as_root.post(page_of(gail), profile(gail))

    gail.refresh_from_db()
    assert (gail.is_staff, gail.has_usable_password(), has_second_factor(gail)) == (False,) * 3
    assert [to for to, _ in told()] == [["gail@example.com"]]


def test_nobody_takes_the_own_access_away(as_bob: Client, bob: User) -> None:
    assert take_away_as_home(as_bob, bob).status_code == 403
    bob.refresh_from_db()
    assert bob.is_staff


def test_access_taken_and_given_back_to_another_address_gives_nothing_of_the_former(
    acme: Organisation, as_bob: Client, as_gail: Client, gail: User
) -> None:
    factories.make_pin(gail)
    take_away_as_home(as_bob, gail)
    as_bob.post(page_of(gail), profile(gail, email=EVE))
    as_bob.post(
        reverse("admin:accounts_organisation_invite_administrator", args=[acme.pk]),
        {"email": EVE, "role": "administrator"},
    )
    [link] = links_mailed()
    gail.refresh_from_db()
    before = gail.is_staff
    use(link)

    gail.refresh_from_db()
    assert (before, gail.is_staff, gail.email) == (False, True, EVE)
    assert authenticate(username=EVE, password=PASSWORD) is None
    assert as_gail.get(reverse("admin:index")).status_code == 302
    gails = ["gail@example.com"]
    assert sorted(to for to, _ in told()) == [[EVE], [EVE], gails, gails]


def test_the_address_of_an_administrator_of_two_organisations_stays_after_access_is_taken(
    as_bob: Client, gail: User, globex: Organisation
) -> None:
    gail.memberships.create(organisation=globex, role=Role.ADMINISTRATOR)
    take_away_as_home(as_bob, gail)
    as_bob.post(page_of(gail), profile(gail, email=EVE))

    gail.refresh_from_db()
    assert (gail.is_staff, gail.email) == (False, "gail@example.com")


def test_the_second_factor_of_an_administrator_of_two_organisations_stays_too(
    as_bob: Client, gail: User, globex: Organisation
) -> None:
    """Who reads the mailbox gets the next link: the factor keeps them out of the other one."""
    gail.memberships.create(organisation=globex, role=Role.ADMINISTRATOR)
    turn_on_second_factor(gail)
    reset = as_bob.post(action_of(gail, "reset_second_factor"), CONFIRMED)
    taken = take_away_as_home(as_bob, gail)

    gail.refresh_from_db()
    assert (reset.status_code, taken.status_code) == (403, 302)
    assert (gail.is_staff, gail.has_usable_password(), has_second_factor(gail)) == (
        False,
        False,
        True,
    )


def test_a_password_that_home_has_set_ends_when_a_superuser_gives_access(
    as_bob: Client, as_root: Client, alice: User
) -> None:
    form = {"password1": "known to bob 1", "password2": "known to bob 1", "usable_password": "true"}
    set_by_home = as_bob.post(password_page(alice), form).status_code
    as_root.post(page_of(alice), profile(alice, is_staff="on", is_superuser="on"))

    alice.refresh_from_db()
    assert (set_by_home, alice.is_staff, alice.is_superuser) == (302, True, True)
    assert not alice.has_usable_password()
    assert authenticate(username=alice.email, password="known to bob 1") is None
    event = AuthEvent.objects.filter(kind="password.set").latest("pk")
    assert (event.reason, event.actor_label) == ("removed", "root@example.com")


# --- The own e-mail and phone ---------------------------------------------------------------------


def typed(**changes: str) -> dict[str, str]:
    return {"email": "new@example.com", "phone": "+4915111111111", "password": PASSWORD} | changes


def test_staff_change_their_own_login_with_their_password(as_gail: Client, gail: User) -> None:
    shown = text_of(as_gail.get(OWN))
    response = as_gail.post(OWN, typed())

    gail.refresh_from_db()
    assert 'value="gail@example.com"' in shown
    assert (response.status_code, response["Location"]) == (302, OWN)
    assert (gail.email, gail.phone) == ("new@example.com", "+4915111111111")
    assert as_gail.get(OWN).status_code == 200
    [(to, body), (to_new, _)] = told()
    assert (to, to_new) == (["gail@example.com"], ["new@example.com"])
    assert "another e-mail address" in body
    event = AuthEvent.objects.get(kind="user.changed")
    assert (event.subject_id, event.reason) == (str(gail.pk), "email, phone")


def test_staff_of_two_organisations_change_their_own_login(
    as_gail: Client, gail: User, globex: Organisation
) -> None:
    gail.memberships.create(organisation=globex)

    assert as_gail.post(OWN, typed()).status_code == 302
    gail.refresh_from_db()
    assert gail.email == "new@example.com"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"password": "wrong"}, "This password is wrong."),
        ({"password": ""}, "This field is required."),
        ({"email": "bob@example.com"}, "There is a user with this e-mail already."),
        ({"email": "no address"}, "Enter a valid email address."),
        ({"phone": "0170"}, "Enter the number with its country code"),
    ],
)
def test_an_own_change_that_is_refused_changes_nothing(
    as_gail: Client, gail: User, bob: User, changes: dict[str, str], error: str
) -> None:
    before = User.objects.values().get(pk=gail.pk)
    response = as_gail.post(OWN, typed(**changes))

    assert response.status_code == 200
    assert error in text_of(response)
    assert User.objects.values().get(pk=gail.pk) == before
    assert told() == []


def test_an_own_change_needs_the_second_factor_where_there_is_one(gail: User) -> None:
    begin_enrolment(gail)
    confirmed = confirm_enrolment(gail, code_of(gail))
    assert confirmed is not None
    first, second, *_ = confirmed[1]
    client = Client()
    client.post(reverse("admin:login"), {"username": gail.email, "password": PASSWORD})
    before_the_code = client.post(OWN, typed(code=first)).status_code
    client.post(reverse("admin:login_code"), {"code": first})
    answers = [client.post(OWN, typed(**code)) for code in ({}, {"code": first})]
    gail.refresh_from_db()
    former = gail.email

    assert before_the_code == 302
    assert [answer.status_code for answer in answers] == [200, 200]
    assert "This code is wrong or was already used." in text_of(answers[1])
    assert former == "gail@example.com"
    StaticDevice.objects.get(user=gail).throttle_reset()
    assert client.post(OWN, typed(code=second)).status_code == 302
    gail.refresh_from_db()
    assert gail.email == "new@example.com"


def test_the_password_cannot_be_guessed_at_an_unattended_login(as_gail: Client, gail: User) -> None:
    answers = [as_gail.post(OWN, typed(password="wrong")).status_code for _ in range(20)]
    refused = as_gail.post(OWN, typed())

    assert answers == [200] * 20
    assert refused.status_code == 429
    gail.refresh_from_db()
    assert gail.email == "gail@example.com"


@pytest.mark.parametrize("who", ["alice", None])
def test_the_page_is_for_staff(alice: User, who: str | None) -> None:
    client = Client() if who is None else logged_in(alice)
    answers = [client.get(OWN), client.post(OWN, typed())]

    assert [answer.status_code for answer in answers] == [302, 302]
    alice.refresh_from_db()
    assert alice.email == "alice@example.com"
