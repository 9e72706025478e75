"""Locked logins on a user's page: reason, end, and unlocking."""

import pytest
from django.test import Client

from accounts.admin_login_limits import locked_everywhere_until, locked_places
from accounts.models import AuthEvent, AuthEventKind, Organisation, PinFailures, User
from tests.admin.pages import CONFIRMED, page_of, text_of
from tests.factories import fail_admin_logins

pytestmark = pytest.mark.postgresql


def lock_pin(user: User, today: int = 20, in_a_row: int = 20) -> None:
    PinFailures.objects.create(
        bucket=user.email,
        email=user.email,
        failures_today=today,
        consecutive_failures=in_a_row,
    )


def is_login_locked(user: User) -> bool:
    return locked_everywhere_until(user) is not None or bool(locked_places(user))


def is_pin_locked(user: User) -> bool:
    return PinFailures.objects.get(bucket=user.email).is_stopped


def test_a_login_that_is_not_locked_offers_no_unlock(as_bob: Client, alice: User) -> None:
    text = text_of(as_bob.get(page_of(alice)))

    assert "Not locked" in text
    assert "Locked" not in text
    assert page_of(alice, "unlock_pin_login") not in text
    assert as_bob.get(page_of(alice, "unlock_pin_login")).status_code == 403


def test_a_locked_pin_login_says_why_and_until_when(as_bob: Client, alice: User) -> None:
    lock_pin(alice)

    text = text_of(as_bob.get(page_of(alice)))

    assert "20 wrong PINs in 24 hours, until 20" in text
    assert text.count(page_of(alice, "unlock_pin_login")) == 1


def test_a_hundred_in_a_row_stay_locked_until_unlocked(as_bob: Client, alice: User) -> None:
    lock_pin(alice, today=3, in_a_row=100)

    assert "100 wrong PINs in a row, until unlocked" in text_of(as_bob.get(page_of(alice)))


def test_asking_to_unlock_unlocks_nothing(as_bob: Client, alice: User) -> None:
    lock_pin(alice)

    response = as_bob.get(page_of(alice, "unlock_pin_login"))

    assert "The count of wrong PINs starts again at zero" in text_of(response)
    assert is_pin_locked(alice)


def test_bob_unlocks_alice_and_the_audit_names_him(
    as_bob: Client, bob: User, alice: User, acme: Organisation
) -> None:
    lock_pin(alice)

    response = as_bob.post(page_of(alice, "unlock_pin_login"), CONFIRMED)

    assert response["Location"] == page_of(alice)
    assert not is_pin_locked(alice)
    event = AuthEvent.objects.get(kind=AuthEventKind.ACCOUNT_UNLOCKED)
    assert (event.user, event.email, event.organisation) == (bob, alice.email, acme)


def test_a_locked_admin_login_names_the_address(as_bob: Client, alice: User) -> None:
    fail_admin_logins(alice)

    text = text_of(as_bob.get(page_of(alice)))

    assert "5 wrong passwords from 192.0.2.1, until" in text
    assert text.count(page_of(alice, "unlock_admin_login")) == 1


def test_bob_unlocks_the_admin_login_of_alice(as_bob: Client, alice: User) -> None:
    fail_admin_logins(alice, times=20)
    assert "20 wrong passwords in an hour" in text_of(as_bob.get(page_of(alice)))

    response = as_bob.post(page_of(alice, "unlock_admin_login"), CONFIRMED)

    assert response["Location"] == page_of(alice)
    assert not is_login_locked(alice)
    assert AuthEvent.objects.get(kind=AuthEventKind.ACCOUNT_UNLOCKED).reason == "admin-login"


@pytest.mark.parametrize("unlock", ["unlock_pin_login", "unlock_admin_login"])
def test_bob_cannot_unlock_the_logins_of_a_shared_user(
    as_bob: Client, dora: User, unlock: str
) -> None:
    lock_pin(dora)
    fail_admin_logins(dora)

    response = as_bob.post(page_of(dora, unlock), CONFIRMED)

    assert response.status_code == 403
    assert "Locked" not in text_of(as_bob.get(page_of(dora)))
    assert is_pin_locked(dora)
    assert is_login_locked(dora)
    assert not AuthEvent.objects.filter(kind=AuthEventKind.ACCOUNT_UNLOCKED).exists()
