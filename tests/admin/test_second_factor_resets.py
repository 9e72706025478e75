"""Who resets the second factor of whom, and what a reset ends."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.test import Client
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.flows import second_factor
from accounts.models import User
from tests.admin.pages import CONFIRMED, logged_in, page_of
from tests.admin.second_factors import (
    LOGIN,
    OWN,
    after_password,
    bob,
    code_of,
    enter,
    is_in,
    recovery_codes,
)
from tests.factories import bearer, device_login, make_device_token, open_session

__all__ = ["bob", "recovery_codes"]


def test_root_resets_bobs(as_root: Client, bob: User, recovery_codes: list[str]) -> None:
    asked = as_root.get(page_of(bob, "reset_second_factor"))
    still_on = second_factor.has_second_factor(bob)

    done = as_root.post(page_of(bob, "reset_second_factor"), CONFIRMED)

    assert (asked.status_code, still_on, done.status_code) == (200, True, 302)
    assert not second_factor.has_second_factor(bob)
    assert is_in(after_password())
    assert LogEntry.objects.latest("pk").change_message == "Reset the second factor."


def test_a_reset_ends_every_login_and_session_of_the_person(
    as_root: Client, bob: User, recovery_codes: list[str]
) -> None:
    verified, only_password = after_password(), after_password()
    enter(verified, code_of(bob))
    token = open_session(device_login(make_device_token(bob)))
    was_in = is_in(verified)

    as_root.post(page_of(bob, "reset_second_factor"), CONFIRMED)

    assert was_in
    assert not is_in(verified)
    assert not is_in(only_password)
    assert only_password.post(OWN, {"begin": "yes"})["Location"] == LOGIN
    assert not TOTPDevice.objects.exists()
    assert Client().get("/session", headers=bearer(token)).status_code == 401


def test_an_administrator_resets_that_of_a_user_of_their_organisation(
    bob: User, recovery_codes: list[str], erin: User
) -> None:
    erin.memberships.update(role="administrator")

    response = logged_in(erin).post(page_of(bob, "reset_second_factor"), CONFIRMED)

    assert response.status_code == 302
    assert not second_factor.has_second_factor(bob)


def test_no_administrator_resets_that_of_a_shared_user(
    globex: Any, bob: User, recovery_codes: list[str], erin: User
) -> None:
    erin.memberships.update(role="administrator")
    bob.memberships.create(organisation=globex)

    response = logged_in(erin).post(page_of(bob, "reset_second_factor"), CONFIRMED)

    assert response.status_code == 403
    assert second_factor.has_second_factor(bob)


def test_a_member_cannot_reset_second_factors(
    bob: User, recovery_codes: list[str], erin: User
) -> None:
    response = logged_in(erin).post(page_of(bob, "reset_second_factor"), CONFIRMED)

    assert response.status_code == 403
    assert second_factor.has_second_factor(bob)


def test_root_does_not_reset_the_own_one(as_root: Client, root: User) -> None:
    as_root.post(OWN, {"begin": "yes"})
    as_root.post(OWN, {"code": code_of(root)})

    response = as_root.post(page_of(root, "reset_second_factor"), CONFIRMED)

    assert response.status_code == 403
    assert second_factor.has_second_factor(root)
