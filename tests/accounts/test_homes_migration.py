"""What the migrations make of users and events from before homes counted."""

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from accounts.audit import record
from accounts.models import AuthEvent, AuthEventKind, Organisation, User
from core.http.origin import NOWHERE

homes_left = import_module("accounts.migrations.0006_homes_left")
events_of_home = import_module("accounts.migrations.0007_events_of_home")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homes_left, "BATCH", 1)
    monkeypatch.setattr(events_of_home, "BATCH", 2)


def event_of(user: User, **fields: Any) -> AuthEvent:
    """An event without an organisation."""
    record(AuthEventKind.SESSION_OPENED, NOWHERE, user=user, **fields)
    return AuthEvent.objects.latest("pk")


def organisation_of(event: AuthEvent) -> Organisation | None:
    return AuthEvent.objects.get(pk=event.pk).organisation


def test_a_user_removed_from_home_gets_no_home(
    acme: Organisation, alice: User, bob: User, charlie: User
) -> None:
    alice.memberships.all().delete()
    charlie.memberships.all().delete()

    homes_left.clear_homes_left(apps, None)

    homes = dict(User.objects.values_list("email", "home__name"))
    assert homes == {alice.email: None, bob.email: "Acme", charlie.email: None}


def test_events_about_a_shared_user_get_their_home(
    acme: Organisation, globex: Organisation, alice: User
) -> None:
    alice.memberships.create(organisation=globex)
    events = [event_of(alice) for _ in range(5)]

    events_of_home.record_under_home(apps, None)

    assert [organisation_of(event) for event in events] == [acme] * 5


def test_events_that_may_be_about_somebody_else_get_none(
    acme: Organisation, globex: Organisation, alice: User, bob: User
) -> None:
    User.objects.filter(pk=bob.pk).update(home=None)
    superuser = User.objects.create_superuser("root@example.com", "a password of root", home=acme)
    events = [event_of(bob), event_of(superuser), event_of(alice, email="old@example.com")]
    elsewhere = event_of(alice, organisation=globex)

    events_of_home.record_under_home(apps, None)

    assert [organisation_of(event) for event in events] == [None, None, None]
    assert organisation_of(elsewhere) == globex
