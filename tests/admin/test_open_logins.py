"""Losing a right takes effect at the next request of an open admin login."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.forms import SetPasswordMixin
from django.test import Client
from django.urls import reverse

from accounts.flows.organisations import remove_member
from accounts.flows.users import deactivate_user, update_user
from accounts.models import ApiKey, Organisation, Role, User
from hooks.models import Hook
from scripts_engine.models import Script
from tests import factories
from tests.admin.pages import CONFIRMED, action_on, list_of, logged_in, page_of, text_of
from tests.written import nothing_written

PASSWORD = "a password of bob"


def lower_the_role(acme: Organisation, bob: User) -> None:
    update_user(acme, bob, role=Role.MEMBER)


def take_staff_away(acme: Organisation, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=False)


def end_the_membership(acme: Organisation, bob: User) -> None:
    remove_member(acme, bob)


def deactivate(acme: Organisation, bob: User) -> None:
    deactivate_user(acme, bob)


LOSSES = [lower_the_role, take_staff_away, end_the_membership, deactivate]


@pytest.fixture
def acme_things(acme: Organisation, acme_hook: Hook, alice: User) -> dict[str, Any]:
    return {
        "script": acme_hook.script,
        "hook": acme_hook,
        "user": alice,
        "key": factories.make_api_key(acme).api_key,
    }


def requests_of(things: dict[str, Any]) -> dict[str, Callable[[Client], Any]]:
    """One of each kind of request, ready since before the loss."""
    script, hook, user, key = (things[name] for name in ("script", "hook", "user", "key"))
    source = {"name": "renamed", "source": "return 1", "timeout_seconds": "5", "is_enabled": "on"}
    autocomplete = {
        "app_label": "hooks",
        "model_name": "hook",
        "field_name": "script",
        "term": "",
    }
    return {
        "list": lambda client: client.get(list_of(Script)),
        "page": lambda client: client.get(page_of(script)),
        "form": lambda client: client.post(page_of(script), source),
        "form of a user": lambda client: client.post(page_of(user), {"name": "Mallory"}),
        "add": lambda client: client.post(
            list_of(ApiKey, "add"), {"name": "new", "preset": "everything"}
        ),
        "action of a list": lambda client: client.post(list_of(Hook), action_on(hook, "disable")),
        "action of a page": lambda client: client.post(page_of(key, "revoke"), CONFIRMED),
        "password": lambda client: client.post(
            reverse("admin:auth_user_password_change", args=[user.pk]),
            {"password1": "mallory's own", "password2": "mallory's own"},
        ),
        "autocomplete": lambda client: client.get(reverse("admin:autocomplete"), autocomplete),
        "deletion": lambda client: client.post(page_of(script, "delete"), {"post": "yes"}),
    }


def test_before_a_loss_each_of_them_is_served(as_bob: Client, acme_things: dict[str, Any]) -> None:
    answers = {name: ask(as_bob) for name, ask in requests_of(acme_things).items()}

    assert [name for name, answer in answers.items() if is_refused(answer)] == []


def is_refused(answer: Any) -> bool:
    is_sent_to_the_login = answer.status_code == 302 and "/login/" in answer["Location"]
    return answer.status_code in {403, 404} or is_sent_to_the_login


@pytest.mark.parametrize("lose", LOSSES)
def test_after_a_loss_no_request_of_an_open_login_is_served(
    lose: Callable[[Organisation, User], None],
    acme: Organisation,
    bob: User,
    as_bob: Client,
    acme_things: dict[str, Any],
) -> None:
    was_served = as_bob.get(list_of(Script)).status_code
    lose(acme, bob)
    with nothing_written():
        answers = {name: ask(as_bob) for name, ask in requests_of(acme_things).items()}

    assert was_served == 200
    assert [name for name, answer in answers.items() if not is_refused(answer)] == []


@pytest.mark.parametrize("lose", LOSSES)
def test_after_a_loss_the_menus_search_and_home_show_nothing(
    lose: Callable[[Organisation, User], None],
    acme: Organisation,
    bob: User,
    as_bob: Client,
    acme_things: dict[str, Any],
) -> None:
    lose(acme, bob)
    search = as_bob.get(reverse("admin:search"), {"s": "echo"})
    home = as_bob.get(reverse("admin:index"))

    assert "echo" not in text_of(search)
    assert "echo" not in text_of(home)


def test_an_administrator_of_an_organisation_that_is_switched_off_still_sees_it(
    acme: Organisation, as_bob: Client, acme_script: Script
) -> None:
    acme.is_active = False
    acme.save()

    assert "echo" in text_of(as_bob.get(list_of(Script)))


def test_a_key_outlives_the_membership_of_its_creator(
    acme: Organisation, bob: User, as_bob: Client
) -> None:
    issued = factories.make_api_key(acme)
    ApiKey.objects.update(created_by=bob)
    token = factories.open_session(factories.api_key_login(issued))
    remove_member(acme, bob)

    answer = factories.admin_graphql("{ apiKeys { nodes { name } } }", token)

    assert answer.data["apiKeys"]["nodes"] == [{"name": "warehouse"}]


# --- Passwords ------------------------------------------------------------------------------------


@pytest.fixture
def bob_with_a_password(bob: User) -> User:
    bob.set_password(PASSWORD)
    bob.save()
    return bob


def change_own_password(client: Client) -> Any:
    new = "another password of bob"
    return client.post(
        reverse("admin:password_change"),
        {"old_password": PASSWORD, "new_password1": new, "new_password2": new},
    )


def test_a_new_password_ends_the_other_logins_and_not_this_one(bob_with_a_password: User) -> None:
    here, elsewhere = logged_in(bob_with_a_password), logged_in(bob_with_a_password)
    changed = change_own_password(here)

    assert changed["Location"] == reverse("admin:password_change_done")
    assert here.get(list_of(Script)).status_code == 200
    assert "/login/" in elsewhere.get(list_of(Script))["Location"]


def test_a_new_password_brings_back_no_right_that_was_taken_at_the_same_moment(
    bob_with_a_password: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = logged_in(bob_with_a_password)
    save = SetPasswordMixin.set_password_and_save

    def take_meanwhile(self: Any, *arguments: Any, **options: Any) -> Any:
        User.objects.filter(pk=bob_with_a_password.pk).update(is_active=False, is_staff=False)
        return save(self, *arguments, **options)

    monkeypatch.setattr(SetPasswordMixin, "set_password_and_save", take_meanwhile)
    change_own_password(client)

    bob_with_a_password.refresh_from_db()
    assert (bob_with_a_password.is_active, bob_with_a_password.is_staff) == (False, False)


def test_a_password_that_root_sets_ends_bobs_logins(as_root: Client, bob: User) -> None:
    client = logged_in(bob)
    was_in = client.get(list_of(Script)).status_code
    as_root.post(
        reverse("admin:auth_user_password_change", args=[bob.pk]),
        {
            "password1": "a new one of bob",
            "password2": "a new one of bob",
            "usable_password": "true",
        },
    )

    assert was_in == 200
    assert "/login/" in client.get(list_of(Script))["Location"]
