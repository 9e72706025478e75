"""The search of the admin (Ctrl-K): what it finds, and for whom."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.flows.organisations import create_organisation
from accounts.models import ApiKey, Organisation, User
from hooks.models import Hook
from jobs.models import Schedule
from scripts_engine.models import Run, Script
from tests import factories
from tests.admin.pages import page_of, run_of, text_of
from tests.written import nothing_written

pytestmark = pytest.mark.postgresql

FOUND_BY_ID = [Run, Script, Hook, Schedule, Organisation, ApiKey, User]


def search(client: Client, term: str) -> str:
    response = client.get(reverse("admin:search"), {"s": term, "extended": "1"})
    assert response.status_code == 200
    return text_of(response)


def results_of(html: str) -> list[str]:
    """The words of each result, without the icon."""
    entries = re.findall(r'mh-command-result">(.*?)</a>', html, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", entry).split()) for entry in entries]


@pytest.mark.parametrize(
    ("term", "result"),
    [
        ("acme scr", "Acme script Script · Acme"),
        ("ACME HO", "Acme hook Hook · Acme script · Acme"),
        ("acme-member@", "acme-member@example.org User · Acme"),
        ("  Acme-Member@EXAMPLE.org ", "acme-member@example.org User · Acme"),
        ("Background", "Background tasks Page · System"),
    ],
)
def test_a_result_names_its_kind_and_organisation(
    as_root: Client, acme_objects: dict[type, Any], term: str, result: str
) -> None:
    assert result in results_of(search(as_root, term))


def test_an_organisation_and_a_key_are_found_by_name(
    as_bob: Client, acme_objects: dict[type, Any]
) -> None:
    key = acme_objects[ApiKey]

    assert results_of(search(as_bob, "acme")) == [
        "Acme script Script · Acme",
        "Acme hook Hook · Acme script · Acme",
        "Acme schedule Schedule · 0 6 * * * · Acme script · Acme",
        f"{key} API key · Acme",
        "Acme Organisation",
        "acme-member@example.org User · Acme",
    ]
    assert results_of(search(as_bob, key.key)) == [f"{key} API key · Acme"]


@pytest.mark.parametrize("model", FOUND_BY_ID, ids=lambda model: model.__name__)
def test_an_id_finds_its_row(
    as_bob: Client, acme_objects: dict[type, Any], model: type[Any]
) -> None:
    row = acme_objects[model]

    html = search(as_bob, f" {str(row.pk).upper()} ")

    assert len(results_of(html)) == 1
    assert f'href="{page_of(row)}"' in html


@pytest.mark.parametrize("model", FOUND_BY_ID, ids=lambda model: model.__name__)
def test_bob_finds_nothing_of_globex_by_id(
    as_bob: Client, as_root: Client, globex_objects: dict[type, Any], model: type[Any]
) -> None:
    row_id = str(globex_objects[model].pk)

    assert len(results_of(search(as_root, row_id))) == 1
    assert results_of(search(as_bob, row_id)) == []


@pytest.mark.parametrize(
    "term", ["globex", "Globex script", "Globex hook", "Globex sched", "globex-member@"]
)
def test_bob_finds_nothing_of_globex_by_name(
    as_bob: Client, as_root: Client, globex_objects: dict[type, Any], term: str
) -> None:
    with nothing_written():
        assert results_of(search(as_root, term)) != []
        assert results_of(search(as_bob, term)) == []


def test_bob_finds_no_key_of_globex(as_bob: Client, globex_objects: dict[type, Any]) -> None:
    assert results_of(search(as_bob, globex_objects[ApiKey].key)) == []


def test_a_foreign_member_is_shown_with_bobs_own_organisation(as_bob: Client, dora: User) -> None:
    assert results_of(search(as_bob, "dora@")) == ["dora@example.com User · Acme"]


def test_staff_without_an_organisation_find_only_home(
    as_erin: Client, acme_objects: dict[type, Any]
) -> None:
    assert results_of(search(as_erin, "acme")) == []
    assert results_of(search(as_erin, str(acme_objects[Run].pk))) == []
    assert results_of(search(as_erin, "o")) == ["Home Page · Moonhook"]


def test_an_anonymous_visitor_is_sent_to_the_login(acme_objects: dict[type, Any]) -> None:
    response = Client().get(reverse("admin:search"), {"s": "acme"})

    assert response.status_code == 302
    assert response.content == b""


def test_a_lost_membership_ends_what_the_search_finds(
    as_bob: Client, bob: User, acme_objects: dict[type, Any]
) -> None:
    assert results_of(search(as_bob, "acme scr")) != []
    bob.memberships.all().delete()

    assert results_of(search(as_bob, "acme scr")) == []


def test_deleted_scripts_are_not_found(as_bob: Client, acme_script: Script) -> None:
    assert results_of(search(as_bob, str(acme_script.pk))) != []
    as_bob.post(page_of(acme_script, "delete"), {"confirmed": "yes", "post": "yes"})

    assert results_of(search(as_bob, str(acme_script.pk))) == []


@pytest.mark.parametrize("term", ["%", "_", "'", "\\", "a", "\0", "%00", "ß", "x" * 5000, "🌙🌙"])
def test_odd_terms_find_nothing(as_bob: Client, acme_hook: Hook, term: str) -> None:
    assert "Hook ·" not in search(as_bob, term)


def test_names_are_escaped(as_bob: Client, acme: Organisation) -> None:
    factories.make_script(acme, name="<b>orders</b>")

    html = search(as_bob, "<b>ord")

    assert "&lt;b&gt;orders" in html
    assert "<b>" not in html


def test_umlauts_are_found_in_either_case(as_bob: Client, acme: Organisation) -> None:
    factories.make_script(acme, name="Überweisung")

    assert results_of(search(as_bob, "über")) == ["Überweisung Script · Acme"]


def test_at_most_five_of_a_kind_are_shown_those_that_begin_with_the_term_first(
    as_bob: Client, acme: Organisation
) -> None:
    first = factories.make_script(acme, name="orders")
    others = [factories.make_script(acme, name=f"new orders {number}") for number in range(6)]

    shown = results_of(search(as_bob, "orders"))

    assert len(others) == 6
    assert shown[0] == f"{first.name} Script · Acme"
    assert len(shown) == 5


def test_the_search_asks_the_database_a_bounded_number_of_times(
    as_bob: Client, acme: Organisation, django_assert_max_num_queries: Any
) -> None:
    run_of(factories.make_hook(factories.make_script(acme, name="orders"), "orders").hook)
    create_organisation("Orders and more")

    with django_assert_max_num_queries(20):
        search(as_bob, "orders")


def test_the_hint_is_in_the_header_of_each_page(as_bob: Client) -> None:
    html = text_of(as_bob.get(reverse("admin:index")))

    assert "Ctrl-K" in html
    assert 'role="dialog" aria-modal="true" aria-label="Search"' in html
