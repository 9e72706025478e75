"""The admin's login resists guessing, password spraying and overload."""

import logging
from contextlib import ExitStack
from datetime import timedelta
from time import sleep
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.db import connection
from django.db.models import F
from django.test import Client
from django.urls import reverse

from accounts.flows.second_factor import reset_second_factor
from accounts.models import AuthEvent, AuthEventKind, Membership, Organisation, RateCounter, User
from accounts.password_hasher import PASSWORD_HASHES
from config.admin.known_browser import cookie_name
from core.waiting import DatabaseThreads
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.concurrency import at_once

LOGIN = reverse("admin:login")
CHANGE = reverse("admin:password_change")
PASSWORD = "a password of bob"


@pytest.fixture
def bob(bob: User) -> User:
    bob.set_password(PASSWORD)
    bob.save()
    return bob


@pytest.fixture
def bobs_browser(bob: User) -> Client:
    """bob has logged in with it before, and is logged out."""
    browser = Client(REMOTE_ADDR="203.0.113.77")
    browser.post(LOGIN, {"username": bob.email, "password": PASSWORD})
    browser.post(reverse("admin:logout"))
    return browser


def post(client: Client, email: str, password: str) -> Any:
    return client.post(LOGIN, {"username": email, "password": password})


def try_password(email: str, password: str, address: str = "192.0.2.1") -> Any:
    return post(Client(REMOTE_ADDR=address), email, password)


def guess(email: str, times: int, address: str = "192.0.2.1") -> list[int]:
    return [try_password(email, "a guess", address).status_code for _ in range(times)]


def guess_from_everywhere(email: str, times: int) -> None:
    for number in range(times):
        guess(email, 1, f"198.51.100.{number}")


def pass_time(**age: float) -> None:
    """Every open window began that much earlier."""
    earlier = timedelta(**age) // timedelta(microseconds=1)
    RateCounter.objects.update(ends_at=F("ends_at") - earlier)


def refusals(reason: str) -> int:
    return AuthEvent.objects.filter(kind=AuthEventKind.ADMIN_LOGIN_REFUSED, reason=reason).count()


def test_five_wrong_passwords_close_the_login(bob: User) -> None:
    assert guess(bob.email, 6) == [200] * 5 + [429]


def test_then_the_right_password_is_refused_too(bob: User) -> None:
    guess(bob.email, 5)

    response = try_password(bob.email, PASSWORD)

    assert response.status_code == 429
    assert 840 < int(response["Retry-After"]) <= 900
    assert "no-store" in response["Cache-Control"]
    assert "too many wrong passwords for this login" in text_of(response)
    assert "Try again in 15 minutes." in text_of(response)
    assert SESSION_KEY not in response.client.session


def test_the_wait_is_that_of_the_longest_window_that_is_full(bob: User) -> None:
    guess_from_everywhere(bob.email, 15)
    guess(bob.email, 5)

    assert 3500 < int(try_password(bob.email, PASSWORD)["Retry-After"]) <= 3600


@pytest.mark.django_db(transaction=True)
def test_of_sixty_tries_at_once_five_are_hashed_and_no_more(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    check_password = User.check_password
    monkeypatch.setattr(
        User,
        "check_password",
        lambda self, password: hashed.append(password) or check_password(self, password),
    )
    statuses = at_once(60, lambda _: try_password(bob.email, "a guess").status_code)

    assert len(hashed) == 5
    assert sorted(statuses) == [200] * 5 + [429] * 55
    assert try_password(bob.email, PASSWORD).status_code == 429


def test_a_locked_login_is_on_record_once_a_window(bob: User) -> None:
    guess(bob.email, 12)

    assert refusals("wrong-credentials") == 5
    assert refusals("locked-out") == 1
    pass_time(minutes=15)
    guess(bob.email, 12)
    assert refusals("locked-out") == 2


def test_ever_new_names_from_one_client_cost_thirty_hashes(bob: User) -> None:
    statuses = [
        try_password(f"nobody{number}@example.com", "a guess").status_code for number in range(40)
    ]
    refused = try_password(bob.email, PASSWORD)

    assert statuses == [200] * 30 + [429] * 10
    assert refused.status_code == 429
    assert 540 < int(refused["Retry-After"]) <= 600
    assert refusals("locked-out") == 1
    assert try_password(bob.email, PASSWORD, "192.0.2.2").status_code == 302


def test_right_passwords_do_not_use_up_a_clients_tries(bob: User) -> None:
    statuses = [try_password(bob.email, PASSWORD).status_code for _ in range(32)]

    assert statuses == [302] * 32


def test_tries_at_a_locked_login_do_not_lock_the_client(bob: User, root: User) -> None:
    guess(bob.email, 60)

    assert try_password(root.email, "a password of root").status_code == 302


def test_the_page_is_the_same_for_users_and_strangers(bob: User) -> None:
    guess(bob.email, 5)
    guess("nobody@example.com", 5, "192.0.2.2")

    of_bob = try_password(bob.email, "a guess")
    of_nobody = try_password("nobody@example.com", "a guess", "192.0.2.2")

    assert of_bob.status_code == of_nobody.status_code == 429
    assert bob.email not in text_of(of_bob)


def test_every_spelling_of_the_address_is_one_login(bob: User) -> None:
    guess("bob@example.com", 2)
    guess("BOB@example.com", 3)

    assert guess("  Bob@Example.com ", 1) == [429]


def test_tries_during_the_lock_do_not_prolong_it(bob: User) -> None:
    guess(bob.email, 5)
    pass_time(minutes=14)
    guess(bob.email, 3)
    pass_time(minutes=1)

    assert try_password(bob.email, PASSWORD).status_code == 302


def test_another_address_is_not_locked_out_by_five(bob: User) -> None:
    guess(bob.email, 5)

    assert try_password(bob.email, PASSWORD, "192.0.2.2").status_code == 302


def test_twenty_from_everywhere_close_the_login_for_every_stranger(bob: User) -> None:
    guess_from_everywhere(bob.email, 20)

    assert try_password(bob.email, PASSWORD, "203.0.113.2").status_code == 429


def test_nineteen_do_not(bob: User) -> None:
    guess_from_everywhere(bob.email, 19)

    assert try_password(bob.email, PASSWORD, "203.0.113.2").status_code == 302


def test_a_browser_that_logged_in_before_is_not_locked_out_by_strangers(
    bob: User, bobs_browser: Client
) -> None:
    guess_from_everywhere(bob.email, 20)
    guess(bob.email, 5, "203.0.113.77")

    assert post(bobs_browser, bob.email, PASSWORD).status_code == 302


def test_a_known_browser_has_five_tries_of_its_own(bob: User, bobs_browser: Client) -> None:
    statuses = [post(bobs_browser, bob.email, "a guess").status_code for _ in range(6)]

    assert statuses == [200] * 5 + [429]
    assert post(bobs_browser, bob.email, PASSWORD).status_code == 429
    assert try_password(bob.email, PASSWORD).status_code == 302


def test_a_browser_is_known_for_the_one_user_and_password(
    bob: User, root: User, bobs_browser: Client
) -> None:
    cookie = bobs_browser.cookies[cookie_name(bob.email)]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/admin")

    bobs_browser.cookies[cookie_name(root.email)] = cookie.value
    guess_from_everywhere(root.email, 20)
    assert post(bobs_browser, root.email, "a password of root").status_code == 429

    bob.set_password("another password")
    bob.save()
    guess_from_everywhere(bob.email, 20)
    assert post(bobs_browser, bob.email, "another password").status_code == 429


def test_a_forged_cookie_makes_no_browser_known(bob: User) -> None:
    guess_from_everywhere(bob.email, 20)
    stranger = Client()
    stranger.cookies[cookie_name(bob.email)] = "0123456789abcdef:1tXyZ0:forged"

    assert post(stranger, bob.email, PASSWORD).status_code == 429


def test_a_wrong_password_makes_no_browser_known(bob: User) -> None:
    response = try_password(bob.email, "a guess")

    assert cookie_name(bob.email) not in response.cookies


def test_changing_the_own_password_keeps_the_browser_known(bob: User, as_bob: Client) -> None:
    new = "a new password of his"
    as_bob.post(CHANGE, {"old_password": PASSWORD, "new_password1": new, "new_password2": new})
    as_bob.post(reverse("admin:logout"))
    guess_from_everywhere(bob.email, 20)

    assert post(as_bob, bob.email, new).status_code == 302


def test_an_open_session_does_not_serve_to_guess_the_password(bob: User, as_bob: Client) -> None:
    wrong = {"old_password": "a guess", "new_password1": "x", "new_password2": "y"}
    statuses = [as_bob.post(CHANGE, wrong).status_code for _ in range(21)]

    assert statuses == [200] * 20 + [429]


def test_an_administrator_sets_twenty_passwords_an_hour(
    as_root: Client, alice: User, settings: Any
) -> None:
    page = reverse("admin:auth_user_password_change", args=[alice.pk])
    statuses = [as_root.post(page, {"password1": "x"}).status_code for _ in range(21)]
    refused = as_root.post(page, {"password1": "x"})

    assert statuses == [200] * 20 + [429]
    assert 0 < int(refused["Retry-After"]) <= 3600


def test_beyond_two_hashes_at_once_the_login_asks_to_come_back(bob: User, settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["accounts.password_hasher.BoundedPasswordHasher"]
    with PASSWORD_HASHES.place("acme"), PASSWORD_HASHES.place("globex"):
        responses = [try_password("nobody@example.com", "a guess") for _ in range(7)]

    assert [response.status_code for response in responses] == [503] * 7
    assert responses[0]["Retry-After"] == "1"
    assert "Server busy" in text_of(responses[0])
    # Nothing was tried, so nothing counts.
    assert refusals("wrong-credentials") == 0
    assert not RateCounter.objects.filter(hits__gt=0).exists()


@pytest.mark.parametrize("page", ["auth_user_password_change", "password_change"])
def test_setting_a_password_takes_a_place_among_the_hashes(
    page: str,
    root: User,
    as_root: Client,
    alice: User,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(PASSWORD_HASHES, "_wait_seconds", 0)
    settings.PASSWORD_HASHERS = [
        "accounts.password_hasher.BoundedPasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    new = "a new password of theirs"
    typed = {"password1": new, "password2": new, "new_password1": new, "new_password2": new}
    address = reverse(f"admin:{page}", args=[alice.pk] if page.startswith("auth") else [])
    with PASSWORD_HASHES.place("acme"), PASSWORD_HASHES.place("globex"):
        response = as_root.post(address, {"old_password": "a password of root", **typed})

    assert response.status_code == 503
    root.refresh_from_db()
    alice.refresh_from_db()
    assert not alice.has_usable_password()
    assert root.password.startswith("md5$")


@pytest.mark.django_db(transaction=True)
def test_a_known_browser_is_hashed_before_strangers(
    bob: User, bobs_browser: Client, settings: Any
) -> None:
    settings.PASSWORD_HASHERS = [
        "accounts.password_hasher.BoundedPasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    with ExitStack() as strangers, PASSWORD_HASHES.place("another organisation"):
        strangers.enter_context(PASSWORD_HASHES.place())
        strangers_too_many = try_password(bob.email, PASSWORD).status_code
        with DatabaseThreads(1) as pool:
            waiting = pool.submit(lambda: post(bobs_browser, bob.email, PASSWORD).status_code)
            while not PASSWORD_HASHES.waiting:
                sleep(0.01)
            strangers.close()
            assert waiting.result() == 302

    assert strangers_too_many == 503


def test_strangers_leave_a_place_among_the_hashes(bob: User, settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["accounts.password_hasher.BoundedPasswordHasher"]
    with PASSWORD_HASHES.place():
        assert try_password("nobody@example.com", "a guess").status_code == 503
        with PASSWORD_HASHES.place("acme"):
            pass


def test_a_hundred_right_passwords_in_ten_minutes_are_hashed_and_no_more(
    bob: User, bobs_browser: Client
) -> None:
    statuses = [post(bobs_browser, bob.email, PASSWORD).status_code for _ in range(99)]
    refused = post(bobs_browser, bob.email, PASSWORD)

    assert statuses == [302] * 99
    assert refused.status_code == 429
    assert 540 < int(refused["Retry-After"]) <= 600
    assert "logged in too often" in text_of(refused)


@pytest.mark.parametrize("typed", ["bo\u00df@example.com", "Bo\u1e9e@example.com"])
def test_a_spelling_that_only_folds_to_the_address_is_the_same_login(
    typed: str, acme: Organisation
) -> None:
    boss = factories.make_user(acme, "boss@example.com")
    guess(boss.email, 5)

    assert guess(typed, 1) == [429]


def test_a_browser_is_known_until_all_logins_of_the_user_are_ended(
    bob: User, bobs_browser: Client
) -> None:
    reset_second_factor(bob)
    guess_from_everywhere(bob.email, 20)

    assert post(bobs_browser, bob.email, PASSWORD).status_code == 429


def test_a_browser_is_not_known_any_more_after_a_deactivation(
    bob: User, bobs_browser: Client
) -> None:
    for is_active in (False, True):
        bob.is_active = is_active
        bob.save()
    guess_from_everywhere(bob.email, 20)

    assert post(bobs_browser, bob.email, PASSWORD).status_code == 429


@pytest.mark.django_db(transaction=True)
def test_no_connection_is_held_while_a_new_password_is_hashed(
    as_root: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    are_held: list[bool] = []
    set_password = User.set_password

    def noted(user: User, password: str) -> None:
        are_held.append(connection.in_atomic_block)
        set_password(user, password)

    monkeypatch.setattr(User, "set_password", noted)
    new = {"password1": "a new password of alice", "password2": "a new password of alice"}
    as_root.post(reverse("admin:auth_user_password_change", args=[alice.pk]), new)

    alice.refresh_from_db()
    assert are_held == [False]
    assert alice.check_password("a new password of alice")


def test_a_password_is_not_set_that_must_not_be_when_it_is_hashed(
    as_bob: Client, alice: User, globex: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_password = User.set_password

    def join_meanwhile(user: User, password: str) -> None:
        set_password(user, password)
        Membership.objects.create(user=alice, organisation=globex)

    monkeypatch.setattr(User, "set_password", join_meanwhile)
    new = {"password1": "a new password of alice", "password2": "a new password of alice"}
    refused = as_bob.post(reverse("admin:auth_user_password_change", args=[alice.pk]), new)

    alice.refresh_from_db()
    assert refused.status_code == 403
    assert not alice.has_usable_password()


def test_an_ipv6_client_is_its_network(bob: User) -> None:
    guess(bob.email, 5, "2001:db8::1")

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


def test_a_login_resets_the_failures_of_its_client(bob: User) -> None:
    guess(bob.email, 4)
    try_password(bob.email, PASSWORD)

    assert guess(bob.email, 5) == [200] * 5


def test_a_login_keeps_the_failures_of_other_clients(bob: User, root: User) -> None:
    guess(root.email, 5)
    guess_from_everywhere(bob.email, 19)
    try_password(bob.email, PASSWORD)

    assert guess(bob.email, 2, "203.0.113.9") == [200, 429]
    assert guess(root.email, 1) == [429]


def test_nothing_holds_a_password(bob: User, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        try_password(bob.email, "not quite the password")
        try_password("typed into the wrong field", "x")

    kept = str(list(RateCounter.objects.values())) + str(list(AuthEvent.objects.values()))
    assert "not quite the password" not in caplog.text + kept
    assert "typed into the wrong field" not in caplog.text + kept


def test_load_tests_may_switch_it_off(bob: User, settings: Any) -> None:
    settings.IS_RATE_LIMITED = False

    assert guess(bob.email, 7) == [200] * 7
    assert not RateCounter.objects.exists()


def test_administrators_who_may_unlock_see_the_failures(bob: User, as_root: Client) -> None:
    guess(bob.email, 1)

    text = text_of(as_root.get(page_of(bob)))

    assert "Failed admin logins" in text
    assert "Wrong e-mail or password" in text
    assert "192.0.2.1" in text
