"""Rate limits, counted exactly."""

import time
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from accounts.flows.api_keys import IssuedApiKey
from accounts.models import AuthEvent, PinChallenge, RateCounter, User
from accounts.rate_limits import limiter, windows
from accounts.rate_limits.counters import Window
from accounts.rate_limits.limiter import Count, claim, hit, is_full
from core.caches import BoundedCache
from core.errors import RateLimitedError
from jobs.models import Message
from sessions_api.models import Session
from tests.concurrency import at_once
from tests.factories import (
    GraphQLAnswer,
    api_key_login,
    graphql,
    make_pin,
    post_session,
)

SEND = "mutation($email: String!) { sendPinCode(email: $email, sendVia: Email) }"
CHECK = """mutation($email: String!, $pin: String!, $device: String!) {
    checkPinCode(email: $email, pin: $pin, device: $device) { result } }"""
NEWER = "application/graphql-response+json"


def send(email: str, **headers: str) -> GraphQLAnswer:
    return graphql("/user/graphql", SEND, headers=headers, email=email)


def check(email: str, pin: str) -> GraphQLAnswer:
    return graphql("/user/graphql", CHECK, email=email, pin=pin, device=str(uuid.uuid4()))


def pass_time(age: timedelta) -> None:
    """Every open window began that much earlier."""
    RateCounter.objects.update(ends_at=F("ends_at") - age // timedelta(microseconds=1))


@pytest.mark.parametrize("email", ["alice@example.com", "nobody@example.com"])
def test_an_address_gets_one_code_a_minute(alice: User, email: str) -> None:
    assert send(email).data == {"sendPinCode": True}
    refused = send(email.upper())

    assert (refused.status, refused.code) == (200, "RATE_LIMITED")
    assert 1 <= refused.errors[0]["extensions"]["retryAfter"] <= 60
    assert Message.objects.count() == 1
    pass_time(timedelta(seconds=60))
    assert send(email).data == {"sendPinCode": True}


def test_a_refusal_says_when_to_try_again_in_a_header_too(db: None) -> None:
    body = {"query": SEND, "variables": {"email": "alice@example.com"}}
    headers = {"Accept": NEWER}
    Client().post("/user/graphql", body, content_type="application/json")
    response = Client().post(
        "/user/graphql", body, content_type="application/json", headers=headers
    )

    assert response.status_code == 429
    retry_after = response.json()["errors"][0]["extensions"]["retryAfter"]
    assert response["Retry-After"] == str(retry_after)


def test_an_address_gets_five_codes_an_hour_and_ten_a_day(db: None) -> None:
    answers = []
    for _ in range(6):
        answers.append(send("alice@example.com").code)
        pass_time(timedelta(seconds=60))

    assert answers == [None] * 5 + ["RATE_LIMITED"]
    pass_time(timedelta(hours=1))
    answers = []
    for _ in range(6):
        answers.append(send("alice@example.com").code)
        pass_time(timedelta(seconds=60))
    assert answers[:4] == [None] * 4
    assert answers[-1] == "RATE_LIMITED"


def test_a_client_asks_for_20_codes_in_ten_minutes(db: None) -> None:
    answers = [send(f"user{number}@example.com").code for number in range(21)]

    assert answers == [None] * 20 + ["RATE_LIMITED"]
    pass_time(timedelta(minutes=10))
    assert send("user21@example.com").code is None


def test_a_client_checks_60_pins_in_five_minutes(alice: User) -> None:
    pin = make_pin(alice)
    wrong = f"{(int(pin) + 1) % 10**6:06d}"
    answers = [check(f"user{number}@example.com", wrong).code for number in range(60)]
    refused = check(alice.email, pin)

    assert answers == [None] * 60
    assert refused.code == "RATE_LIMITED"
    assert PinChallenge.objects.get().tries == 0


def test_a_client_fails_to_log_in_30_times_in_ten_minutes(
    client: Client, acme_key: IssuedApiKey
) -> None:
    wrong = api_key_login(acme_key, password="wrong")
    statuses = [post_session(client, wrong).status_code for _ in range(30)]
    refused = post_session(client, wrong)

    assert statuses == [401] * 30
    assert refused.status_code == 429
    assert refused.json()["code"] == "rate-limited"
    assert 1 <= int(refused["Retry-After"]) <= 600
    assert Session.objects.count() == 0
    assert AuthEvent.objects.filter(kind="session.refused").count() == 30


def test_a_right_secret_passes_where_failures_are_refused(
    client: Client, acme_key: IssuedApiKey
) -> None:
    wrong = api_key_login(acme_key, password="wrong")
    for _ in range(31):
        post_session(client, wrong)

    assert post_session(Client(), api_key_login(acme_key)).status_code == 201
    assert post_session(client, wrong).status_code == 429


def test_a_forged_header_makes_no_new_client(db: None) -> None:
    answers = [
        send(f"user{number}@example.com", **{"X-Forwarded-For": f"203.0.113.{number}"}).code
        for number in range(21)
    ]

    assert answers[-1] == "RATE_LIMITED"


def test_limits_can_be_switched_off_for_load_tests(db: None) -> None:
    with override_settings(IS_RATE_LIMITED=False):
        answers = [send("alice@example.com").code for _ in range(3)]

    assert answers == [None] * 3
    assert RateCounter.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_exactly_as_many_pass_as_the_window_holds_however_many_come_at_once() -> None:
    threads = 100 if connection.vendor == "postgresql" else 20
    outcomes = at_once(threads, lambda _: passes("counted-in-the-database"))

    assert outcomes.count(True) == 5


def passes(name: str) -> bool:
    try:
        hit([windows.SMS_OF_NUMBER], name, "x")
    except RateLimitedError:
        return False
    return True


def test_a_window_that_refused_is_not_written_to_again(db: None) -> None:
    window = Window(1, 10)
    counts = [Count(windows.SMS_OF_NUMBER, ("test", "open")), Count(window, ("test", "full"))]
    hit([window], "test", "full")
    for _ in range(2):
        with pytest.raises(RateLimitedError), CaptureQueriesContext(connection) as queries:
            claim(counts)

    assert [query["sql"] for query in queries if not query["sql"].startswith("SELECT")] == []
    pass_time(timedelta(seconds=11))
    claim(counts)


def test_a_refused_hit_costs_two_statements_and_one_when_known(
    db: None, django_assert_num_queries: Any
) -> None:
    assert passes_once("counted")
    with django_assert_num_queries(2):
        refused = not passes_once("counted")
    with django_assert_num_queries(1):
        refused_again = not passes_once("counted")

    assert (refused, refused_again) == (True, True)
    assert RateCounter.objects.get().hits == 1


def test_a_window_from_before_the_clock_was_set_back_is_started_again(db: None) -> None:
    assert [passes("set-back") for _ in range(6)] == [True] * 5 + [False]
    pass_time(timedelta(days=-2))

    assert [passes("set-back") for _ in range(6)] == [True] * 5 + [False]


def test_a_refused_claim_gives_back_only_what_it_counted(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may find the window full between the first look and the hit."""
    count = Count(Window(1, windows.HOUR), ("test", "raced"))
    claim([count])
    looks = iter([0])
    monkeypatch.setattr(limiter, "_known_wait", lambda *_: next(looks, 1))
    with pytest.raises(RateLimitedError):
        claim([count])

    monkeypatch.undo()
    assert is_full(count)


def test_no_more_full_windows_are_remembered_than_there_is_room_for(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter, "_known_full", BoundedCache(2))
    for name in "abcd":
        for expected in (True, False, False):
            assert passes_once(name) is expected

    assert len(limiter._known_full) <= 2


def passes_once(name: str) -> bool:
    try:
        hit([Window(1, windows.HOUR)], "once", name)
    except RateLimitedError:
        return False
    return True


def test_every_window_has_a_key_of_its_own(db: None) -> None:
    send("alice@example.com")

    hits = sorted(RateCounter.objects.values_list("hits", flat=True))
    assert hits == [1, 1, 1, 1]
    assert RateCounter.objects.filter(ends_at__gt=time.time() * 1_000_000).count() == 4


def test_one_clients_failures_do_not_count_for_another(
    client: Client, acme_key: IssuedApiKey
) -> None:
    login = api_key_login(acme_key, password="wrong")
    for _ in range(31):
        post_session(client, login)
    other: Any = Client(REMOTE_ADDR="192.0.2.99")

    assert post_session(other, login).status_code == 401


def test_hits_given_back_late_do_not_lower_the_next_window(db: None) -> None:
    count = Count(Window(2, windows.HOUR), ("test-late",))
    claimed = claim([count])
    claimed = claimed._replace(claimed_at=claimed.claimed_at - windows.HOUR)
    RateCounter.objects.update(ends_at=0)
    claim([count, count])
    claimed.give_back()

    assert is_full(count)


def test_hits_given_back_twice_do_not_fall_below_zero(db: None) -> None:
    count = Count(Window(2, windows.HOUR), ("test-zero",))
    claimed = claim([count])
    for _ in range(3):
        claimed.give_back()
    claim([count, count])

    assert is_full(count)
