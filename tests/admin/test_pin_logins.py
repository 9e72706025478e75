from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from accounts.models import (
    AuthEvent,
    AuthEventKind,
    Organisation,
    PinChallenge,
    PinFailures,
    Role,
    User,
)
from tests import factories
from tests.admin.pages import action_on, list_of, logged_in, page_of, text_of
from tests.admin.roles import client_of


def test_a_pin_request_is_shown_without_codes_and_digests(as_root: Client, alice: User) -> None:
    pin = factories.make_pin(alice)
    challenge = PinChallenge.objects.get()

    text = text_of(as_root.get(page_of(challenge)))

    assert "alice@example.com" in text
    assert challenge.codes.get().digest not in text
    assert f">{pin}<" not in text


def test_a_pin_request_cannot_be_changed(as_root: Client, alice: User) -> None:
    factories.make_pin(alice)

    response = as_root.post(page_of(PinChallenge.objects.get()), {"tries": "0"})

    assert response.status_code == 403


def test_bob_unlocks_alice(as_bob: Client, bob: User, alice: User) -> None:
    factories.make_pin(alice)
    PinFailures.objects.update(consecutive_failures=settings.PIN_CONSECUTIVE_FAILURES)
    locked = text_of(as_bob.get(list_of(PinFailures)))

    response = as_bob.post(
        list_of(PinFailures), action_on(PinFailures.objects.get(), "unlock_selected")
    )

    assert "wrong PINs in a row" in locked
    assert response.status_code == 302
    assert PinFailures.objects.get().consecutive_failures == 0
    assert LogEntry.objects.get().change_message == "Unlocked."
    event = AuthEvent.objects.get(kind=AuthEventKind.ACCOUNT_UNLOCKED)
    assert (event.user, event.email) == (bob, "alice@example.com")
    assert event.organisation == bob.sole_organisation()


def test_bob_cannot_unlock_a_shared_user(as_bob: Client, dora: User) -> None:
    factories.make_pin(dora)
    PinFailures.objects.update(consecutive_failures=100)

    as_bob.post(list_of(PinFailures), action_on(PinFailures.objects.get(), "unlock_selected"))

    assert PinFailures.objects.get().consecutive_failures == 100


def test_only_those_locked_now_are_listed(as_bob: Client, acme: Organisation, alice: User) -> None:
    over = timezone.now() - timedelta(hours=25)
    for bucket, today, in_a_row, day in (
        ("alice@example.com", 0, 100, over),
        ("alice@example.com named", 49, 100, timezone.now()),
        (f"alice@example.com {uuid4()}", 20, 0, over),
    ):
        PinFailures.objects.create(
            bucket=bucket,
            email=alice.email,
            failures_today=today,
            consecutive_failures=in_a_row,
            day_started_at=day,
        )

    response = as_bob.get(list_of(PinFailures))

    (row,) = response.context["cl"].result_list
    assert row.bucket == alice.email
    assert "100 wrong PINs in a row" in text_of(response)
    assert "When unlocked" in text_of(response)


@pytest.mark.parametrize("today", [0, 19, 20, 49, 50])
@pytest.mark.parametrize("in_a_row", [99, 100])
@pytest.mark.parametrize("name", ["{}", "{} named", "{} 72d3162e-cc78-11e3-81ab-4c9367dc0958"])
@pytest.mark.parametrize("hours", [-48, 1, 25])
def test_the_list_agrees_with_the_check(
    alice: User, today: int, in_a_row: int, name: str, hours: int
) -> None:
    failures = PinFailures.objects.create(
        bucket=name.format(alice.email),
        email=alice.email,
        failures_today=today,
        consecutive_failures=in_a_row,
        day_started_at=timezone.now() - timedelta(hours=hours),
    )

    assert PinFailures.objects.stopped().exists() is failures.is_stopped


def test_without_lockouts_the_list_says_so(as_bob: Client, alice: User) -> None:
    factories.make_pin(alice)

    text = text_of(as_bob.get(list_of(PinFailures)))

    assert "Nobody is locked out of PIN login." in text
    assert alice.email not in text


def test_lockouts_are_reached_from_the_users(as_bob: Client, charlie: User, alice: User) -> None:
    assert "No PIN login is locked." in text_of(as_bob.get(list_of(User)))
    factories.make_pin(alice)
    PinFailures.objects.update(consecutive_failures=100)

    text, elsewhere = text_of(as_bob.get(list_of(User))), logged_in(charlie).get(list_of(User))

    assert "1 PIN login is locked now" in text
    assert f'href="{list_of(PinFailures)}"' in text
    assert "No PIN login is locked." in text_of(elsewhere)
    assert alice.email not in text_of(logged_in(charlie).get(list_of(PinFailures)))


def test_a_viewer_sees_no_lockouts(acme: Organisation, alice: User) -> None:
    factories.make_pin(alice)
    PinFailures.objects.update(consecutive_failures=100)

    response = client_of(acme, Role.VIEWER).get(list_of(PinFailures))

    assert response.status_code == 403
    assert alice.email not in text_of(response)
