from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.models import AuthEvent, AuthEventKind, PinChallenge, PinFailures, User
from tests import factories
from tests.admin.pages import action_on, list_of, page_of, text_of


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

    assert "Locked" in locked
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
