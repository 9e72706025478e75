"""What holds however many try at once."""

import uuid
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from accounts.flows.check_pin import check_pin
from accounts.flows.deactivate_user import deactivate_user
from accounts.flows.send_pin import make_code
from accounts.flows.update_user import update_user
from accounts.models import DeviceToken, Organisation, PinChallenge, PinFailures, User
from config.http.origin import NOWHERE
from tests.concurrency import at_once
from tests.factories import make_pin

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _without_windows(settings: Any) -> None:
    """The challenge and the account hold by themselves, without the windows of the client."""
    settings.IS_RATE_LIMITED = False


# One writer at a time makes a race on SQLite a queue: fewer show the same there.
THREADS = 100 if connection.vendor == "postgresql" else 20


def guess(email: str, pin: str) -> bool:
    return (
        check_pin(email=email, pin=pin, device=uuid.uuid4(), label="", origin=NOWHERE) is not None
    )


def test_of_many_guesses_at_once_exactly_five_are_evaluated(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = make_pin(alice)
    wrong = f"{(int(pin) + 1) % 10**6:06d}"
    evaluated: list[str] = []
    has_code = PinChallenge.has_code
    monkeypatch.setattr(
        PinChallenge, "has_code", lambda self, pin: evaluated.append(pin) or has_code(self, pin)
    )
    outcomes = at_once(THREADS, lambda _: guess(alice.email, wrong))

    assert outcomes == [False] * THREADS
    assert len(evaluated) == settings.PIN_TRIES_PER_CHALLENGE == 5
    assert PinChallenge.objects.get().tries == 5
    assert not guess(alice.email, pin)


def test_of_many_redemptions_at_once_one_succeeds(alice: User) -> None:
    pin = make_pin(alice)
    outcomes = at_once(THREADS, lambda _: guess(alice.email, pin))

    assert outcomes.count(True) == 1
    assert DeviceToken.objects.count() == 1


def test_the_account_is_stopped_exactly_at_its_daily_count(alice: User) -> None:
    make_pin(alice)
    PinFailures.objects.update(failures_today=settings.PIN_FAILURES_PER_DAY - 3)
    claims = at_once(THREADS, lambda _: PinFailures.objects.claim_try(alice.email))

    assert claims.count(True) == 3


def test_codes_made_at_once_share_one_challenge(alice: User) -> None:
    pins = at_once(8, lambda _: make_code(alice.email, alice))

    challenge = PinChallenge.objects.get()
    assert challenge.codes.count() == 8
    assert sum(challenge.has_code(pin) for pin in set(pins)) == 3


def test_a_deactivation_is_not_undone_by_a_change_at_the_same_time(
    acme: Organisation, alice: User
) -> None:
    def act(number: int) -> None:
        stale = User.objects.get(pk=alice.pk)
        if number == 3:
            deactivate_user(acme, stale)
        else:
            update_user(acme, stale, name=f"Alice {number}")

    at_once(7, act)

    alice.refresh_from_db()
    assert not alice.is_active
    assert alice.sessions_valid_after is not None
    assert alice.name.startswith("Alice ")
