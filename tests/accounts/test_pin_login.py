import uuid
from datetime import timedelta

import pytest
from django.conf import settings
from django.core import mail
from django.utils import timezone

from accounts.flows.check_pin import check_pin
from accounts.flows.users import update_user
from accounts.messages.channels import SendVia
from accounts.models import DeviceToken, Organisation, PinChallenge, PinCode, PinFailures, User
from core.http.origin import NOWHERE
from tests.factories import deliver_pin, is_accepted, make_code, make_device_token, make_pin

DEVICE = uuid.uuid4()


def guess(email: str, pin: str) -> bool:
    return check_pin(email=email, pin=pin, device=DEVICE, label="phone", origin=NOWHERE) is not None


def wrong(pin: str) -> str:
    return f"{(int(pin) + 1) % 10**6:06d}"


def test_the_right_pin_makes_a_device_token(alice: User) -> None:
    issued = check_pin(
        email=alice.email, pin=make_pin(alice), device=DEVICE, label="phone", origin=NOWHERE
    )

    assert issued is not None
    assert issued.device_token.user == alice
    assert issued.device_token.device == DEVICE
    assert is_accepted(issued)


def test_a_pin_works_once(alice: User) -> None:
    pin = make_pin(alice)
    assert guess(alice.email, pin)

    assert not guess(alice.email, pin)
    assert DeviceToken.objects.count() == 1


def test_a_wrong_pin_makes_nothing(alice: User) -> None:
    pin = make_pin(alice)

    assert not guess(alice.email, wrong(pin))
    assert DeviceToken.objects.count() == 0


def test_a_pin_is_only_for_its_own_address(alice: User, charlie: User) -> None:
    make_pin(charlie)

    assert not guess(charlie.email, make_pin(alice))
    assert DeviceToken.objects.count() == 0


@pytest.mark.parametrize("spelling", ["{0} {1}", " {0}-{1} ", "{0}{1}\n"])
def test_spaces_and_hyphens_in_a_pin_are_ignored(alice: User, spelling: str) -> None:
    pin = make_pin(alice)

    assert guess(alice.email, spelling.format(pin[:3], pin[3:]))


def test_other_digits_than_ascii_are_not_digits(alice: User) -> None:
    pin = make_pin(alice)
    arabic = pin.translate({ord(str(d)): chr(0x0660 + d) for d in range(10)})

    assert not guess(alice.email, arabic)
    assert guess(alice.email, pin)


def test_the_newest_three_codes_are_accepted(alice: User) -> None:
    first, *newest = [make_pin(alice) for _ in range(4)]

    assert not guess(alice.email, first)
    assert guess(alice.email, newest[0])


def test_a_code_expires_ten_minutes_after_its_sending(alice: User) -> None:
    pin = make_pin(alice)
    PinCode.objects.update(expires_at=timezone.now())

    assert not guess(alice.email, pin)
    assert timedelta(minutes=10) == settings.PIN_LIFETIME


def test_five_tries_burn_the_challenge(alice: User) -> None:
    pin = make_pin(alice)
    tries = [guess(alice.email, wrong(pin)) for _ in range(5)]

    assert tries == [False] * 5
    assert not guess(alice.email, pin)
    assert DeviceToken.objects.count() == 0


def test_the_fifth_try_may_be_the_right_one(alice: User) -> None:
    pin = make_pin(alice)
    for _ in range(4):
        guess(alice.email, wrong(pin))

    assert guess(alice.email, pin)


def test_another_code_gives_no_more_tries_to_the_challenge(alice: User) -> None:
    pin = make_pin(alice)
    for _ in range(4):
        guess(alice.email, wrong(pin))
    make_pin(alice)
    guess(alice.email, "999999" if pin != "999999" else "000000")

    assert not guess(alice.email, pin)
    assert PinChallenge.objects.count() == 1


def test_after_a_burnt_challenge_the_next_code_opens_a_new_one(alice: User) -> None:
    pin = make_pin(alice)
    for _ in range(5):
        guess(alice.email, wrong(pin))

    assert guess(alice.email, make_pin(alice))
    assert PinChallenge.objects.count() == 2


def test_twenty_failures_a_day_stop_the_account(alice: User) -> None:
    make_pin(alice)
    PinFailures.objects.update(failures_today=settings.PIN_FAILURES_PER_DAY - 1)
    pin = make_pin(alice)
    guess(alice.email, wrong(pin))

    assert not guess(alice.email, pin)
    assert not guess(alice.email, make_pin(alice))


def test_the_daily_stop_ends_after_24_hours(alice: User) -> None:
    pin = make_pin(alice)
    PinFailures.objects.update(
        failures_today=settings.PIN_FAILURES_PER_DAY,
        day_started_at=timezone.now() - timedelta(hours=24),
    )

    assert guess(alice.email, pin)


def test_a_hundred_consecutive_failures_stop_the_account_until_it_is_unlocked(alice: User) -> None:
    pin = make_pin(alice)
    PinFailures.objects.update(consecutive_failures=settings.PIN_CONSECUTIVE_FAILURES)
    assert not guess(alice.email, pin)

    PinFailures.objects.unlock(alice.email)
    assert guess(alice.email, pin)


def test_a_success_ends_the_run_of_failures_and_is_none_itself(alice: User) -> None:
    pin = make_pin(alice)
    guess(alice.email, wrong(pin))
    assert guess(alice.email, pin)

    failures = PinFailures.objects.get(bucket=alice.email)
    assert (failures.failures_today, failures.consecutive_failures) == (1, 0)


def test_a_new_login_on_the_same_device_replaces_its_token(alice: User) -> None:
    old = make_device_token(alice, DEVICE)
    new = make_device_token(alice, DEVICE)

    assert not is_accepted(old)
    assert is_accepted(new)


def test_logins_on_two_devices_are_independent(alice: User) -> None:
    first, second = make_device_token(alice), make_device_token(alice)

    assert is_accepted(first)
    assert is_accepted(second)


def test_an_inactive_user_cannot_log_in_with_a_code_from_before(alice: User) -> None:
    pin = make_pin(alice)
    alice.is_active = False
    alice.save()

    assert not guess(alice.email, pin)


def test_an_unknown_address_has_a_challenge_without_a_sent_code(db: None) -> None:
    deliver_pin("nobody@example.com", SendVia.BOTH)

    assert PinChallenge.objects.get(email="nobody@example.com").user is None
    assert mail.outbox == []


def test_the_code_of_an_unknown_address_does_not_log_in(db: None) -> None:
    pin = make_code("nobody@example.com", None)

    assert not guess("nobody@example.com", pin)
    assert DeviceToken.objects.count() == 0


def test_codes_sent_to_an_old_phone_are_worth_nothing(acme: Organisation, alice: User) -> None:
    pin = make_pin(alice)
    update_user(acme, alice, phone="+491709999999")

    assert not guess(alice.email, pin)


def test_no_code_is_readable_in_the_database(alice: User) -> None:
    pin = make_pin(alice)

    assert pin not in str(list(PinCode.objects.values())) + str(list(PinChallenge.objects.values()))
