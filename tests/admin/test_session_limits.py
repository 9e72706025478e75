import time
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.flows.users import update_user
from accounts.models import Organisation, User
from tests.admin.pages import list_of, text_of

HOME, LOGIN = reverse("admin:index"), reverse("admin:login")
HOUR = 3600


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the login's clocks to hours after the test began."""
    began = time.time()

    def pass_by(hours: float) -> None:
        clock = SimpleNamespace(time=lambda: began + hours * HOUR)
        monkeypatch.setattr("config.admin.middleware.time", clock)

    return pass_by


def test_a_login_that_is_used_lasts(as_bob: Client, later: Any) -> None:
    as_bob.get(HOME)
    later(0.9)
    as_bob.get(HOME)
    later(1.8)

    assert as_bob.get(HOME).status_code == 200


def test_a_login_ends_after_an_idle_hour_and_says_why(as_bob: Client, later: Any) -> None:
    as_bob.get(HOME)
    later(1.1)

    response = as_bob.get(list_of(User), follow=True)

    assert response.redirect_chain[0][0].startswith(LOGIN)
    assert "You were logged out" in text_of(response)
    later(0)
    assert as_bob.get(HOME).status_code == 302


def test_a_login_ends_twelve_hours_after_it_began(
    as_bob: Client, later: Any, settings: Any
) -> None:
    as_bob.get(HOME)
    settings.ADMIN_SESSION_IDLE = settings.ADMIN_SESSION_ABSOLUTE * 2
    later(11.9)
    before = as_bob.get(HOME).status_code
    later(12.1)

    assert (before, as_bob.get(HOME).status_code) == (200, 302)


def test_a_new_login_starts_new_limits(bob: User, later: Any) -> None:
    bob.set_password("a password of bob")
    bob.save()
    client = Client()
    client.force_login(bob)
    client.get(HOME)
    later(0.9)
    client.post(LOGIN, {"username": bob.email, "password": "a password of bob"})
    later(1.8)

    assert client.get(HOME).status_code == 200


def test_the_clocks_of_the_admin_leave_others_alone(as_bob: Client, later: Any) -> None:
    as_bob.get(HOME)
    later(1.1)

    as_bob.post("/admin/graphql", "{}", content_type="application/json")

    later(0)
    assert as_bob.get(HOME).status_code == 200


def test_a_login_from_before_the_clock_was_set_back_lasts_no_longer_than_another(
    as_bob: Client, later: Any
) -> None:
    later(400 * 24)
    as_bob.get(HOME)
    later(0)
    was_in = as_bob.get(HOME).status_code
    later(1.1)

    assert was_in == 200
    assert as_bob.get(HOME).status_code == 302


def test_a_login_from_before_a_deactivation_stays_ended(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    before = as_bob.get(HOME).status_code
    update_user(acme, bob, is_active=False)
    update_user(acme, bob, is_active=True)

    assert (before, as_bob.get(HOME).status_code) == (200, 302)
    assert as_bob.get(list_of(User)).status_code == 302


def test_a_login_right_after_a_deactivation_lasts(bob: User, acme: Organisation) -> None:
    bob.set_password("a password of bob")
    bob.save()
    update_user(acme, bob, is_active=False)
    update_user(acme, bob, is_active=True)
    client = Client()
    client.post(LOGIN, {"username": bob.email, "password": "a password of bob"})

    assert client.get(HOME).status_code == 200
