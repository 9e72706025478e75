"""Pages for superusers, staff without an organisation, users who are not staff, and strangers."""

import re
from typing import Any

import pytest
from django.conf import settings
from django.core import mail
from django.test import Client
from django.urls import reverse

from accounts.models import User
from scripts_engine.models import Script
from tests.admin.addresses import (
    REGISTERED,
)
from tests.admin.pages import (
    CONFIRMED,
    OUR_MODELS,
    list_of,
    logged_in,
    text_of,
)
from tests.admin.walk import (
    answered,
    foreign_form,
    of_row,
    of_rows,
    opened,
    plain,
    plain_of_all,
    sent,
)
from tests.written import nothing_written

SUPERUSERS_ONLY = [model for model in REGISTERED if model not in OUR_MODELS]


# --- What is for superusers -----------------------------------------------------------------------


@pytest.mark.parametrize("model", SUPERUSERS_ONLY, ids=lambda model: model.__name__)
def test_rows_without_a_tenant_are_for_superusers(
    as_root: Client, as_bob: Client, model: type
) -> None:
    assert as_root.get(list_of(model)).status_code == 200
    assert opened(as_bob, plain(model)) == []
    assert answered(as_bob, plain(model), CONFIRMED) == []


def test_message_delivery_is_for_superusers(as_root: Client, as_bob: Client) -> None:
    address = reverse("admin:message_delivery")

    assert as_root.get(address).status_code == 200
    assert opened(as_bob, [address]) == []
    assert answered(as_bob, [address], {"to": "bob@example.com"}) == []
    assert mail.outbox == []


def test_the_installation_is_for_superusers(as_root: Client, as_bob: Client) -> None:
    address = reverse("admin:installation")

    assert as_root.get(address).status_code == 200
    assert opened(as_bob, [address]) == []


# --- erin, of the staff, who administers nothing --------------------------------------------------


def test_staff_without_an_organisation_open_no_list(
    as_erin: Client, globex_objects: dict[type, Any]
) -> None:
    addresses = [address for model in REGISTERED for address in plain(model)]
    with nothing_written():
        assert opened(as_erin, addresses) == []
        assert answered(as_erin, addresses, foreign_form(globex_objects)) == []


def test_staff_without_an_organisation_open_no_row(
    as_erin: Client, acme_objects: dict[type, Any], globex_objects: dict[type, Any]
) -> None:
    addresses = of_rows(acme_objects) + of_rows(globex_objects)
    with nothing_written():
        assert opened(as_erin, addresses) == []
        assert answered(as_erin, addresses, foreign_form(globex_objects)) == []
    assert mail.outbox == []


def test_the_home_page_of_staff_without_an_organisation_is_empty(
    as_erin: Client, acme_objects: dict[type, Any], globex_objects: dict[type, Any]
) -> None:
    text = text_of(as_erin.get(reverse("admin:index")))

    assert "You have no role in any organisation" in text
    assert not re.search("globex|Acme (key|script|hook)", text)


# --- alice, who is not of the staff, and strangers ------------------------------------------------


def left_the_login(client: Client, addresses: list[str], form: dict[str, str]) -> list[str]:
    """The addresses that answer with anything but the way to the login."""
    login = reverse(settings.LOGIN_URL)
    answers = [(address, client.get(address)) for address in addresses]
    answers += sent(client, addresses, form)
    return [
        f"{answer.status_code} {address}"
        for address, answer in answers
        if answer.status_code != 302 or not answer["Location"].startswith(login)
    ]


def test_users_who_are_not_staff_are_redirected_to_the_login(
    alice: User, acme_objects: dict[type, Any]
) -> None:
    addresses, form = plain_of_all() + of_rows(acme_objects), foreign_form(acme_objects)
    client = logged_in(alice)
    with nothing_written():
        assert left_the_login(client, addresses, form) == []


def test_a_stranger_is_sent_to_the_login(acme_objects: dict[type, Any]) -> None:
    addresses = plain_of_all() + of_rows(acme_objects)
    names = ("index", "search", "installation", "message_delivery")
    addresses += [reverse(f"admin:{name}") for name in names]
    with nothing_written():
        assert left_the_login(Client(), addresses, foreign_form(acme_objects)) == []


def test_the_walk_sees_a_page_that_lets_somebody_in(
    as_root: Client, globex_objects: dict[type, Any]
) -> None:
    assert opened(as_root, of_row(Script, globex_objects)) != []
