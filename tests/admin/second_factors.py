"""Codes of bob's second factor, and logins with them."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.flows import second_factor
from accounts.models import User

HOME, LOGIN, CODE, OWN = (
    reverse(f"admin:{name}") for name in ("index", "login", "login_code", "second_factor")
)
PASSWORD = "a password of bob"


def code_of(user: User, step: int = 0) -> str:
    """What the app shows now, or that many half minutes later, if its first code was not late."""
    device = TOTPDevice.objects.get(user=user)
    return f"{totp(device.bin_key, drift=step + device.drift):06d}"


def wrong_code(user: User) -> str:
    return f"{(int(code_of(user)) + 500_000) % 1_000_000:06d}"


def after_password() -> Client:
    client = Client()
    client.post(LOGIN, {"username": "bob@example.com", "password": PASSWORD})
    return client


def enter(client: Client, code: str, **more: str) -> Any:
    return client.post(CODE, {"code": code, **more})


def is_in(client: Client) -> bool:
    return bool(client.get(HOME).status_code == 200)


def wait_a_minute() -> None:
    """So that the throttle lets another code in."""
    for device in TOTPDevice.objects.all():
        device.throttle_reset()


@pytest.fixture
def bob(bob: User) -> User:
    bob.set_password(PASSWORD)
    bob.save()
    return bob


@pytest.fixture
def recovery_codes(bob: User) -> list[str]:
    """bob has a second factor; its codes of now are unused."""
    second_factor.begin_enrolment(bob)
    confirmed = second_factor.confirm_enrolment(bob, code_of(bob))
    assert confirmed is not None
    TOTPDevice.objects.update(last_t=-1)
    return confirmed[1]
