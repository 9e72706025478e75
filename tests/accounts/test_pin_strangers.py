"""Strangers ask for codes and guess; the owner still logs in, and only the owner."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core import mail
from django.utils import timezone

from accounts.flows.check_pin import check_pin
from accounts.flows.revoke_device import revoke_device
from accounts.flows.send_pin import request_pin
from accounts.messages.channels import SendVia
from accounts.models import (
    AuthEvent,
    DeviceToken,
    PinChallenge,
    PinCode,
    PinFailures,
    PinTries,
    RateCounter,
    User,
)
from accounts.models.pin_failures import named_devices_bucket
from core.errors import RateLimitedError
from core.http.origin import NOWHERE, Origin
from tests.factories import make_device_token, make_pin, user_graphql, work

OWN, STRANGE = uuid.uuid4(), uuid.uuid4()
SEND = """mutation($email: String, $device: String) {
    sendPinCode(email: $email, sendVia: Email, device: $device) }"""


def guess(user: User, pin: str, device: uuid.UUID) -> bool:
    return check_pin(email=user.email, pin=pin, device=device, label="", origin=NOWHERE) is not None


def guess_wrong(user: User, device: uuid.UUID, times: int = 1) -> None:
    for _ in range(times):
        assert not guess(user, "000000", device)


def stop_strangers(user: User) -> None:
    """With as many devices as it takes."""
    make_pin(user)
    for _ in range(django_settings.PIN_FAILURES_PER_DAY):
        guess_wrong(user, uuid.uuid4())


def rows() -> list[list[dict[str, Any]]]:
    models = (PinChallenge, PinCode, PinTries, PinFailures, DeviceToken)
    return [list(model.objects.order_by("pk").values()) for model in models]


def reasons() -> list[str]:
    return list(AuthEvent.objects.filter(kind="pin.refused").values_list("reason", flat=True))


# --- Codes asked for without a name ---------------------------------------------------------------


@pytest.mark.parametrize(
    "strangers", [[STRANGE] * 5, [uuid.uuid4() for _ in range(10)]], ids=["one", "ten"]
)
def test_wrong_codes_of_strangers_do_not_burn_the_code_of_another_device(
    alice: User, strangers: list[uuid.UUID]
) -> None:
    pin = make_pin(alice)
    for device in strangers:
        guess_wrong(alice, device)

    assert guess(alice, pin, OWN)


def test_wrong_codes_of_stopped_strangers_do_not_burn_the_code_of_a_known_device(
    alice: User,
) -> None:
    make_device_token(alice, OWN)
    stop_strangers(alice)
    pin = make_pin(alice)
    for _ in range(10):
        guess_wrong(alice, uuid.uuid4())

    assert guess(alice, pin, OWN)


def test_a_stopped_stranger_gets_false_for_the_right_code_and_touches_nothing(alice: User) -> None:
    stop_strangers(alice)
    pin = make_pin(alice)
    before = rows()

    assert not guess(alice, pin, STRANGE)
    assert rows() == before
    assert reasons()[0] == "account-stopped"


def test_tries_that_guess_nothing_do_not_count(alice: User) -> None:
    make_pin(alice)
    guess_wrong(alice, STRANGE, times=15)
    PinChallenge.objects.update(ended_at=timezone.now())
    guess_wrong(alice, uuid.uuid4(), times=15)

    failures = PinFailures.objects.get()
    assert (failures.failures_today, failures.consecutive_failures) == (5, 5)


@pytest.mark.parametrize(("number", "device"), [(0, OWN), (1, OWN), (1, STRANGE)])
def test_the_next_code_opens_a_challenge_without_ending_that_of_the_others(
    alice: User, number: int, device: uuid.UUID
) -> None:
    pin = make_pin(alice)
    guess_wrong(alice, STRANGE, times=5)
    newer = make_pin(alice)

    assert not guess(alice, pin, STRANGE)
    assert guess(alice, (pin, newer)[number], device)


@pytest.mark.parametrize("asks", [None, OWN])
def test_a_login_ends_every_code_that_others_could_try(alice: User, asks: uuid.UUID | None) -> None:
    pin = make_pin(alice)
    guess_wrong(alice, STRANGE, times=5)
    newer = make_pin(alice, asks)
    of_another = make_pin(alice, STRANGE)

    assert guess(alice, newer, OWN)
    assert [guess(alice, pin, device) for device in (OWN, uuid.uuid4())] == [False] * 2
    assert guess(alice, of_another, STRANGE)


def test_the_name_of_a_bucket_typed_as_an_address_counts_nothing(alice: User) -> None:
    make_pin(alice, OWN)
    before = rows()
    for name in (named_devices_bucket(alice.email).name, f"{alice.email} {OWN}"):
        check_pin(email=name, pin="000000", device=STRANGE, label="", origin=NOWHERE)

    assert rows() == before


# --- Codes of devices that name themselves --------------------------------------------------------


def test_a_device_that_named_itself_logs_in_while_strangers_are_stopped(alice: User) -> None:
    stop_strangers(alice)
    PinFailures.objects.update(consecutive_failures=django_settings.PIN_CONSECUTIVE_FAILURES)

    assert guess(alice, make_pin(alice, OWN), OWN)


def test_the_code_of_a_named_device_is_for_that_device_alone(alice: User) -> None:
    known = make_device_token(alice).device_token.device
    pin = make_pin(alice, OWN)
    make_pin(alice)
    make_pin(alice, STRANGE)

    assert [guess(alice, pin, device) for device in (STRANGE, uuid.uuid4(), known)] == [False] * 3
    assert guess(alice, pin, OWN)


def test_a_stranger_who_names_a_device_cannot_try_codes_that_others_asked_for(
    alice: User,
) -> None:
    pin = make_pin(alice)
    make_pin(alice, STRANGE)

    assert not guess(alice, pin, STRANGE)
    assert guess(alice, pin, OWN)


def test_requests_of_strangers_do_not_displace_the_code_of_a_named_device(alice: User) -> None:
    pin = make_pin(alice, OWN)
    for device in [None, STRANGE] * 4:
        make_pin(alice, device)

    assert guess(alice, pin, OWN)


def test_a_named_device_has_five_tries_a_challenge(alice: User) -> None:
    pin = make_pin(alice, OWN)
    guess_wrong(alice, OWN, times=4)
    newer = make_pin(alice, OWN)
    guess_wrong(alice, OWN)

    assert [guess(alice, each, OWN) for each in (pin, newer)] == [False] * 2
    assert guess(alice, make_pin(alice, OWN), OWN)


def test_a_named_device_that_tries_on_does_not_stop_other_named_devices(alice: User) -> None:
    make_pin(alice, STRANGE)
    guess_wrong(alice, STRANGE, times=55)

    assert PinFailures.objects.get(bucket__endswith="named").failures_today == 5
    assert guess(alice, make_pin(alice, OWN), OWN)


def test_fifty_failures_a_day_stop_named_devices_and_touch_nothing(alice: User) -> None:
    for device in [uuid.uuid4() for _ in range(10)]:
        make_pin(alice, device)
        guess_wrong(alice, device, times=5)
    pin = make_pin(alice, OWN)
    before = rows()

    assert not guess(alice, pin, OWN)
    assert rows() == before
    assert PinFailures.objects.get(bucket__endswith="named").is_stopped
    assert guess(alice, make_pin(alice), uuid.uuid4())


def test_the_stop_of_named_devices_ends_after_24_hours(alice: User) -> None:
    pin = make_pin(alice, OWN)
    PinFailures.objects.filter(bucket__endswith="named").update(
        failures_today=django_settings.PIN_FAILURES_OF_NAMED_PER_DAY,
        consecutive_failures=1000,
        day_started_at=timezone.now() - timedelta(hours=24),
    )

    assert guess(alice, pin, OWN)


def test_known_devices_are_in_neither_bucket(alice: User) -> None:
    make_device_token(alice, OWN)
    make_pin(alice, STRANGE)
    before = list(PinFailures.objects.order_by("bucket").values())
    make_pin(alice, OWN)
    guess_wrong(alice, OWN, times=5)

    kept = PinFailures.objects.exclude(bucket__endswith=str(OWN)).order_by("bucket")
    assert list(kept.values()) == before
    assert PinFailures.objects.get(bucket__endswith=str(OWN)).failures_today == 5


def test_a_known_device_logs_in_while_every_bucket_of_unknown_ones_is_full(alice: User) -> None:
    make_device_token(alice, OWN)
    stop_strangers(alice)
    PinFailures.objects.filter(bucket__endswith="named").update(failures_today=50)

    assert guess(alice, make_pin(alice), OWN)
    assert guess(alice, make_pin(alice, OWN), OWN)


# --- Asking for codes -----------------------------------------------------------------------------


def ask(user: User, device: uuid.UUID | None = None, client: str = "192.0.2.1") -> bool:
    """Whether the request is within the limits."""
    try:
        request_pin(user.email, SendVia.EMAIL, Origin(client_address=client), device=device)
    except RateLimitedError:
        return False
    return True


def use_up_the_codes_of_a_day(user: User) -> None:
    assert ask(user)
    RateCounter.objects.filter(key__contains="pin-send-to").update(hits=10)
    RateCounter.objects.filter(key__endswith="/1/60").delete()


def test_a_known_device_gets_a_code_when_strangers_used_up_those_of_the_day(alice: User) -> None:
    make_device_token(alice, OWN)
    use_up_the_codes_of_a_day(alice)
    work()
    mail.outbox.clear()

    assert not ask(alice)
    assert not ask(alice, STRANGE)
    assert ask(alice, OWN)
    work()
    assert [message.to for message in mail.outbox] == [[alice.email]]
    assert PinChallenge.objects.open_for(alice.email, OWN) is not None


def test_the_codes_of_a_known_device_have_the_limits_of_an_address(alice: User) -> None:
    make_device_token(alice, OWN)
    assert ask(alice, OWN)

    assert not ask(alice, OWN)
    assert ask(alice)


def test_a_revoked_device_shares_the_codes_of_the_address(alice: User) -> None:
    revoke_device(make_device_token(alice, OWN).device_token)
    use_up_the_codes_of_a_day(alice)

    assert not ask(alice, OWN)


def test_a_code_that_a_device_asked_for_logs_it_in(alice: User) -> None:
    user_graphql(SEND, None, email=alice.email, device=str(OWN))
    work()
    [message] = mail.outbox
    pin = next(word for word in str(message.body).split() if word.isdigit() and len(word) == 6)

    assert not guess(alice, pin, STRANGE)
    assert guess(alice, pin, OWN)


@pytest.mark.parametrize("email", ["alice@example.com", "nobody@example.com"])
def test_asking_for_a_device_answers_and_costs_alike_for_known_and_unknown(
    alice: User, email: str, django_assert_num_queries: Any
) -> None:
    make_device_token(alice, OWN)
    with django_assert_num_queries(7):
        answer = user_graphql(SEND, None, email=email, device=str(STRANGE))

    assert (answer.status, answer.data, answer.errors) == (200, {"sendPinCode": True}, [])


@pytest.mark.parametrize("device", ["", "phone", "6f1e7a52-3c0b-4d8e-9a64-2b7c51d0e9830", "\0"])
def test_a_malformed_device_is_refused_and_sends_nothing(alice: User, device: str) -> None:
    answer = user_graphql(SEND, None, email=alice.email, device=device)
    work()

    assert (answer.status, answer.code) == (200, "BAD_USER_INPUT")
    assert answer.errors[0]["extensions"]["field"] == "device"
    assert answer.data == {"sendPinCode": None}
    assert (mail.outbox, RateCounter.objects.count(), AuthEvent.objects.count()) == ([], 0, 0)


def test_every_refusal_costs_the_same_queries(alice: User, django_assert_num_queries: Any) -> None:
    for email in (alice.email, "nobody@example.com"):
        with django_assert_num_queries(8):
            check_pin(email=email, pin="000000", device=STRANGE, label="", origin=NOWHERE)
    stop_strangers(alice)
    make_pin(alice, OWN)
    for device in (STRANGE, OWN):
        with django_assert_num_queries(8):
            guess_wrong(alice, device)
    guess_wrong(alice, OWN, times=4)
    with django_assert_num_queries(8):
        guess_wrong(alice, OWN)
