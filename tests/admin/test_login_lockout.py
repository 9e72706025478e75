"""Passwords cannot be guessed at the admin's door."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessFailureLog
from django.contrib.auth import SESSION_KEY
from django.test import Client
from django.urls import reverse

from accounts.models import AuthEvent, User
from tests.admin.pages import list_of, text_of

LOGIN = reverse("admin:login")
PASSWORD = "a password of bob"


@pytest.fixture
def bob(bob: User) -> User:
    bob.set_password(PASSWORD)
    bob.save()
    return bob


def try_password(email: str, password: str, address: str = "192.0.2.1") -> Any:
    return Client(REMOTE_ADDR=address).post(LOGIN, {"username": email, "password": password})


def guess(email: str, times: int, address: str = "192.0.2.1") -> list[int]:
    return [try_password(email, "a guess", address).status_code for _ in range(times)]


def guess_from_everywhere(email: str, times: int) -> None:
    for number in range(times):
        guess(email, 1, f"198.51.100.{number}")


def an_hour_ago(**ago: float) -> None:
    for failure in AccessFailureLog.objects.all():
        failure.attempt_time -= timedelta(**ago)
        failure.save()


def test_the_fifth_wrong_password_closes_the_login(bob: User) -> None:
    assert guess(bob.email, 5) == [200, 200, 200, 200, 429]


def test_then_the_right_password_is_refused_too(bob: User) -> None:
    guess(bob.email, 5)

    response = try_password(bob.email, PASSWORD)

    assert response.status_code == 429
    assert 0 < int(response["Retry-After"]) <= 900
    assert "no-store" in response["Cache-Control"]
    assert "Try again in 15 minutes." in text_of(response)
    assert SESSION_KEY not in response.client.session
    assert [event.reason for event in AuthEvent.objects.all()][:1] == ["locked-out"]


def test_the_page_does_not_tell_a_user_from_a_stranger(bob: User) -> None:
    guess(bob.email, 5)
    guess("nobody@example.com", 5, "192.0.2.2")

    of_bob = try_password(bob.email, "a guess")
    of_nobody = try_password("nobody@example.com", "a guess", "192.0.2.2")

    assert of_bob.status_code == of_nobody.status_code == 429
    assert bob.email not in text_of(of_bob)


def test_every_spelling_of_the_address_is_one_login(bob: User) -> None:
    guess("bob@example.com", 2)
    guess("BOB@example.com", 2)

    assert guess("  Bob@Example.com ", 1) == [429]


def test_tries_during_the_lock_do_not_prolong_it(bob: User) -> None:
    guess(bob.email, 5)
    an_hour_ago(minutes=14)
    guess(bob.email, 3)
    an_hour_ago(minutes=2)

    assert AccessFailureLog.objects.count() == 5
    assert try_password(bob.email, PASSWORD).status_code == 302


def test_after_the_cool_off_one_more_failure_closes_it_again(bob: User) -> None:
    guess(bob.email, 5)
    an_hour_ago(minutes=16)

    assert guess(bob.email, 2) == [429, 429]


def test_after_an_hour_all_is_forgotten(bob: User) -> None:
    guess(bob.email, 5)
    an_hour_ago(minutes=61)

    assert guess(bob.email, 4) == [200] * 4


def test_another_address_is_not_locked_out_by_five(bob: User) -> None:
    guess(bob.email, 5)

    assert try_password(bob.email, PASSWORD, "192.0.2.2").status_code == 302


def test_twenty_from_everywhere_close_the_login_for_everybody(bob: User) -> None:
    guess_from_everywhere(bob.email, 19)
    open_still = try_password(bob.email, "a guess", "203.0.113.1")
    closed = try_password(bob.email, PASSWORD, "203.0.113.2")

    assert open_still.status_code == 429
    assert closed.status_code == 429


def test_nineteen_do_not(bob: User) -> None:
    guess_from_everywhere(bob.email, 19)

    assert try_password(bob.email, PASSWORD, "203.0.113.2").status_code == 302


def test_an_ipv6_client_is_its_network(bob: User) -> None:
    guess(bob.email, 4, "2001:db8::1")

    assert guess(bob.email, 1, "2001:db8::2") == [429]
    assert try_password(bob.email, PASSWORD, "2001:db8:0:1::1").status_code == 302


def test_a_forged_header_is_no_other_address(bob: User) -> None:
    guess(bob.email, 5)

    response = Client(REMOTE_ADDR="192.0.2.1").post(
        LOGIN,
        {"username": bob.email, "password": PASSWORD},
        headers={"X-Forwarded-For": "203.0.113.5"},
    )

    assert response.status_code == 429


def test_a_success_forgives_ones_own_typing_errors(bob: User) -> None:
    guess(bob.email, 4)
    try_password(bob.email, PASSWORD)

    assert guess(bob.email, 4) == [200] * 4


def test_a_success_forgives_nobody_else(bob: User, root: User) -> None:
    guess(root.email, 4)
    guess_from_everywhere(bob.email, 10)
    try_password(bob.email, PASSWORD)

    assert AccessFailureLog.objects.filter(username=bob.email).count() == 10
    assert guess(root.email, 1) == [429]


def test_nothing_holds_a_password(bob: User, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        try_password(bob.email, "not quite the password")
        try_password("typed into the wrong field", "x")

    kept = str(list(AccessFailureLog.objects.values())) + str(list(AuthEvent.objects.values()))
    assert "not quite the password" not in caplog.text + kept
    assert "typed into the wrong field" not in caplog.text + kept


def test_load_tests_may_switch_it_off(bob: User, settings: Any) -> None:
    settings.AXES_ENABLED = False

    assert guess(bob.email, 7) == [200] * 7
    assert not AccessFailureLog.objects.exists()


def test_a_superuser_lets_the_user_try_again(bob: User, as_root: Client, root: User) -> None:
    guess(bob.email, 5)
    failure = AccessFailureLog.objects.first()

    response = as_root.post(
        list_of(AccessFailureLog),
        {"action": "forgive_selected", "_selected_action": str(failure.pk)},
    )

    assert response.status_code == 302
    assert try_password(bob.email, PASSWORD).status_code == 302
    event = AuthEvent.objects.get(kind="account.unlocked")
    assert (event.user, event.email, event.reason) == (root, bob.email, "admin-login")


def test_an_administrator_does_not_see_who_failed(bob: User, as_bob: Client) -> None:
    guess(bob.email, 5)
    failure = AccessFailureLog.objects.first()

    listed = as_bob.get(list_of(AccessFailureLog))
    acted = as_bob.post(
        list_of(AccessFailureLog),
        {"action": "forgive_selected", "_selected_action": str(failure.pk)},
    )

    assert (listed.status_code, acted.status_code) == (403, 403)
    assert AccessFailureLog.objects.count() == 5
