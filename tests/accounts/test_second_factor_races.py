"""Concurrent attempts with second-factor codes."""

from typing import Any

import pytest
from django.db import connection
from django_otp.oath import totp
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.flows import second_factor
from accounts.flows.second_factor import verify_code
from accounts.models import User
from core.errors import RateLimitedError
from tests.concurrency import at_once

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 60 if connection.vendor == "postgresql" else 20


@pytest.fixture(autouse=True)
def _waits_are_long(settings: Any) -> None:
    """However slow the machine is, the wait after a wrong code is not over before the last."""
    settings.OTP_TOTP_THROTTLE_FACTOR = settings.OTP_STATIC_THROTTLE_FACTOR = 600


@pytest.fixture
def recovery_codes(bob: User) -> list[str]:
    app = second_factor.begin_enrolment(bob)
    confirmed = second_factor.confirm_enrolment(bob, f"{totp(app.bin_key):06d}")
    assert confirmed is not None
    TOTPDevice.objects.update(last_t=-1)
    return confirmed[1]


def outcome(user: User, code: str) -> str:
    try:
        return "wrong" if verify_code(user, code) is None else "right"
    except RateLimitedError:
        return "refused"


def outcomes(user: User, codes: list[str]) -> dict[str, int]:
    seen = at_once(len(codes), lambda number: outcome(user, codes[number]))
    return {each: seen.count(each) for each in set(seen)}


@pytest.mark.usefixtures("recovery_codes")
def test_of_many_wrong_codes_at_once_one_is_looked_at(bob: User) -> None:
    right = int(f"{totp(TOTPDevice.objects.get().bin_key):06d}")
    wrong = f"{(right + 500_000) % 1_000_000:06d}"

    assert outcomes(bob, [wrong] * THREADS) == {"wrong": 1, "refused": THREADS - 1}
    assert outcome(bob, f"{right:06d}") == "refused"


@pytest.mark.usefixtures("recovery_codes")
def test_of_many_wrong_recovery_codes_at_once_one_is_looked_at(bob: User) -> None:
    assert outcomes(bob, ["aaaaa-aaaaa"] * THREADS) == {"wrong": 1, "refused": THREADS - 1}


@pytest.mark.usefixtures("recovery_codes")
def test_concurrent_uses_of_an_app_code_succeed_once(bob: User) -> None:
    code = f"{totp(TOTPDevice.objects.get().bin_key):06d}"

    assert outcomes(bob, [code] * THREADS)["right"] == 1


def test_concurrent_uses_of_a_recovery_code_succeed_once(
    bob: User, recovery_codes: list[str]
) -> None:
    assert outcomes(bob, [recovery_codes[0]] * THREADS)["right"] == 1
    assert StaticDevice.objects.get().token_set.count() == 9
