"""What is told from times when the clock is set back by hours."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.flows.check_pin import check_pin
from accounts.models import PinChallenge, PinFailures, User
from accounts.models.pin_failures import strangers_bucket
from core.http.origin import NOWHERE
from sessions_api.models import Session
from tests.factories import bearer, make_pin

LONG = timedelta(hours=3)


@pytest.fixture
def set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def now() -> datetime:
        return datetime.now(tz=timezone.get_default_timezone()) - LONG

    monkeypatch.setattr(timezone, "now", now)


def accepts(user: User, pin: str) -> bool:
    issued = check_pin(email=user.email, pin=pin, device=uuid4(), label="", origin=NOWHERE)
    return issued is not None


@pytest.fixture
def expired_pin(alice: User) -> str:
    pin = make_pin(alice)
    for row in (PinChallenge.objects.get(), PinChallenge.objects.get().codes.get()):
        row.expires_at = timezone.now() - timedelta(seconds=1)
        row.save()
    return pin


def test_an_expired_code_does_not_come_to_life(
    alice: User, expired_pin: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("set_back")

    assert not accepts(alice, expired_pin)


def test_a_new_code_is_accepted(
    alice: User, expired_pin: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("set_back")

    assert accepts(alice, make_pin(alice))


def test_a_session_from_before_lasts_as_long_as_any_other_from_its_next_use_on(
    acme_token: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("set_back")
    response = Client().get("/session", headers=bearer(acme_token))
    session, now = Session.objects.get(), timezone.now()

    assert response.status_code == 200
    assert session.created_at <= now
    assert session.last_used_at <= now
    assert session.expires_at - now <= settings.API_KEY_SESSION_IDLE


def test_a_days_failures_do_not_count_for_longer_than_two(alice: User) -> None:
    make_pin(alice)
    PinFailures.objects.update(failures_today=20, day_started_at=timezone.now() + timedelta(days=3))

    assert not PinFailures.objects.get().is_stopped
    assert PinFailures.objects.claim_try(strangers_bucket(alice.email))
    assert PinFailures.objects.get().failures_today == 1
