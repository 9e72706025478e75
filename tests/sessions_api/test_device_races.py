"""Logins by device code under concurrency: one approval, one redemption, one key."""

from typing import Any

import pytest
from django.test import Client

from accounts.flows.organisations import remove_member
from accounts.models import ApiKey, AuthEvent, Organisation, User
from core.errors import ForbiddenError, RateLimitedError
from core.http.origin import NOWHERE, Origin
from sessions_api.device_authorization.flows import find_login, refuse_login
from sessions_api.models import DeviceAuthorization, Session
from tests.concurrency import at_once
from tests.device_logins import approve, poll, start
from tests.factories import bearer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bob(bob: User) -> User:
    bob.is_staff = True
    bob.save()
    return bob


def error_or_status(answer: Any) -> str | int:
    return answer.json()["error"] if answer.status_code == 400 else int(answer.status_code)


def test_of_concurrent_redemptions_one_gets_the_key(acme: Organisation, bob: User) -> None:
    started = start()
    approve(started, bob, acme)

    answers = at_once(6, lambda _: error_or_status(poll(started)))

    assert sorted(answers, key=str) == [200, *["invalid_grant"] * 5]
    assert ApiKey.objects.count() == Session.objects.count() == 1
    assert AuthEvent.objects.filter(kind="api-key.issued").count() == 1


def test_of_concurrent_answers_one_counts(acme: Organisation, bob: User) -> None:
    started = start()

    def answer(number: int) -> str:
        try:
            if number % 2:
                refuse_login(started.row, by=bob, origin=NOWHERE)
                return "denied"
            approve(started, bob, acme, days=number + 1)
        except ForbiddenError:
            return "too late"
        return "approved"

    answers = at_once(6, answer)

    state = DeviceAuthorization.objects.get().state
    assert sorted(answers) == sorted([state, *["too late"] * 5])
    assert AuthEvent.objects.filter(kind__startswith="program-login.").count() == 1


def test_of_concurrent_polls_one_is_in_time(db: None) -> None:
    started = start()

    answers = at_once(4, lambda _: error_or_status(poll(started)))

    assert sorted(map(str, answers)) == ["authorization_pending", *["slow_down"] * 3]
    assert DeviceAuthorization.objects.get().interval_seconds == 5 + 3 * 5


def test_concurrent_guesses_get_five_tries(bob: User) -> None:
    def guess(_: int) -> str:
        try:
            return str(find_login(bob, "BBBB-BBBB", Origin(client_address="192.0.2.1")))
        except RateLimitedError:
            return "too many"

    guesses = at_once(8, guess)

    assert sorted(guesses) == [*["None"] * 5, *["too many"] * 3]


def test_removal_and_redemption_leave_no_living_key(acme: Organisation, bob: User) -> None:
    started = start()
    approve(started, bob, acme)

    def act(number: int) -> Any:
        if number == 0:
            return remove_member(acme, bob)
        return poll(started)

    _, answer = at_once(2, act)

    assert answer.status_code in (200, 400)
    if answer.status_code == 200:
        headers = bearer(answer.json()["access_token"])
        assert Client().get("/session", headers=headers).status_code == 401
    else:
        assert ApiKey.objects.count() == 0
