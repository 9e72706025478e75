"""Invariants that hold under concurrent logins."""

import uuid

import pytest
from django.test import Client, override_settings

from accounts.flows.api_keys import IssuedApiKey
from accounts.flows.check_pin import IssuedDeviceToken, check_pin
from accounts.models import DeviceToken, User
from core.http.origin import NOWHERE
from sessions_api.models import Session
from tests.concurrency import at_once
from tests.factories import (
    api_key_login,
    device_login,
    make_device_token,
    make_pin,
    open_session,
    post_session,
)


@pytest.mark.django_db(transaction=True)
def test_the_cap_of_a_key_holds_for_concurrent_logins(acme_key: IssuedApiKey) -> None:
    with override_settings(SESSIONS_PER_API_KEY=3):
        tokens = at_once(12, lambda _: open_session(api_key_login(acme_key)))

    assert Session.objects.count() == 3
    assert sum(Session.objects.find_live(token) is not None for token in tokens) == 3


@pytest.mark.django_db(transaction=True)
def test_a_new_login_on_a_device_ends_what_the_old_token_opens_at_the_same_moment(
    alice: User,
) -> None:
    old = make_device_token(alice)
    pin, device = make_pin(alice), old.device_token.device

    def act(number: int) -> IssuedDeviceToken | str | None:
        if number == 0:
            return check_pin(email=alice.email, pin=pin, device=device, label="", origin=NOWHERE)
        response = post_session(Client(), device_login(old))
        return str(response.json()["token"]) if response.status_code == 201 else None

    new, *opened = at_once(9, act)

    assert isinstance(new, IssuedDeviceToken)
    assert [token for token in opened if Session.objects.find_live(str(token))] == []
    assert Session.objects.find_live(open_session(device_login(new))) is not None
    assert list(DeviceToken.objects.filter(revoked_at=None)) == [new.device_token]


@pytest.mark.django_db(transaction=True)
def test_concurrent_logins_on_one_device_leave_one_valid_token(alice: User) -> None:
    device = uuid.uuid4()
    pins = [make_pin(alice) for _ in range(3)]

    def log_in(number: int) -> IssuedDeviceToken | None:
        pin = pins[number % 3]
        return check_pin(email=alice.email, pin=pin, device=device, label="", origin=NOWHERE)

    issued = [each for each in at_once(3, log_in) if each is not None]

    assert len(issued) == 1
    assert DeviceToken.objects.filter(revoked_at=None).count() == 1


@pytest.mark.django_db
def test_another_persons_login_on_a_device_with_the_same_id_ends_nothing(
    alice: User, bob: User
) -> None:
    device = uuid.uuid4()
    of_alice = open_session(device_login(make_device_token(alice, device)))
    of_bob = open_session(device_login(make_device_token(bob, device)))

    assert Session.objects.find_live(of_alice) is not None
    assert Session.objects.find_live(of_bob) is not None
