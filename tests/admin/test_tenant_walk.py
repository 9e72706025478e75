"""bob of Acme types the addresses of everything that Globex owns, and gets nothing.

The addresses are read from the admin's own table of them, so that a new page is walked by itself.
"""

import json
import re
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.core import mail
from django.db.models import ForeignKey
from django.test import Client
from django.urls import reverse

from accounts.models import ApiKey, Membership, Organisation, User
from scripts_engine.models import Hook, Run, Script
from sessions_api.models import Session
from tests.admin.addresses import (
    REGISTERED,
    SITE_ADDRESSES,
    UNNAMED,
    list_addresses,
    object_addresses,
    site_patterns,
)
from tests.admin.pages import (
    CONFIRMED,
    OUR_MODELS,
    action_on,
    everything,
    list_of,
    logged_in,
    page_of,
    text_of,
)
from tests.one_of_each import one_of_each

OURS = [model for model in REGISTERED if model in OUR_MODELS]
SUPERUSERS_ONLY = [model for model in REGISTERED if model not in OUR_MODELS]
by_model = pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)

AUTOCOMPLETES = [
    field
    for model in apps.get_models()
    for field in model._meta.get_fields()
    if isinstance(field, ForeignKey)
]
LIST_ACTIONS = [
    pytest.param(model, action, id=f"{model.__name__}-{action}")
    for model in OURS
    for action in (*(admin.site.get_model_admin(model).actions or ()), "delete_selected")
]
TYPED_FILTERS = [
    (model, entry[0])
    for model in OURS
    for entry in admin.site.get_model_admin(model).list_filter
    if isinstance(entry, tuple) and "Autocomplete" in entry[1].__name__
]
CHOSEN = {"organisation": Organisation, "memberships__organisation": Organisation}
CHOSEN |= {"script": Script, "hook": Hook, "user": User, "api_key": ApiKey}


@pytest.fixture
def acme_objects(acme: Organisation, bob: User) -> dict[type, Any]:
    return one_of_each(acme)


def foreign_form(rows: dict[type, Any]) -> dict[str, str]:
    """A form that says yes to everything, and names what is Globex's wherever it can."""
    organisation, user = rows[Organisation], rows[User]
    membership = Membership.objects.get(organisation=organisation, user=user)
    return {
        **CONFIRMED,
        "post": "yes",
        "organisation": str(organisation.pk),
        "script": str(rows[Script].pk),
        "hook": str(rows[Hook].pk),
        "user": str(user.pk),
        "home": str(organisation.pk),
        "name": "Bobs",
        "email": "bobs@example.com",
        "value": "bobs",
        "source": 'return params.get("body")',
        "method": "POST",
        "query": "",
        "headers": "",
        "body": "",
        "body_of": str(rows[Run].pk),
        "run": str(rows[Run].pk),
        "timeout_seconds": "1",
        "is_active": "on",
        "is_enabled": "on",
        "role": "administrator",
        "channel": "email",
        "to": "bobs@example.com",
        "overlap_seconds": "0",
        "password1": "a long enough one",
        "password2": "a long enough one",
        "usable_password": "true",
        "memberships-TOTAL_FORMS": "2",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(membership.pk),
        "memberships-0-organisation": str(organisation.pk),
        "memberships-0-user": str(user.pk),
        "memberships-0-role": "administrator",
        "memberships-0-DELETE": "on",
        "memberships-1-organisation": str(organisation.pk),
        "memberships-1-user": str(user.pk),
        "memberships-1-role": "administrator",
    }


def rows_of_globex(rows: dict[type, Any]) -> list[str]:
    """Every row that names something of Globex in any column, as text to compare."""
    names = {str(row.pk) for row in rows.values() if len(str(row.pk)) > 8} | {"globex", "Globex"}
    found = [
        f"{model} {row}"
        for model, table in everything().items()
        for row in table
        if any(name in str(row) for name in names)
    ]
    return sorted(found)


def opened(client: Client, addresses: list[str]) -> list[str]:
    """The addresses that answer with more than a refusal, or tell of Globex."""
    return _not_refused([(address, client.get(address)) for address in addresses])


def answered(client: Client, addresses: list[str], form: dict[str, str]) -> list[str]:
    return _not_refused(sent(client, addresses, form))


def sent(client: Client, addresses: list[str], form: dict[str, str]) -> list[tuple[str, Any]]:
    """Each address with its answers: to the form, and to the same as JSON."""
    as_json = {"content_type": "application/json"}
    return [
        (address, client.post(address, form, **kind))
        for address in addresses
        for kind in ({}, as_json)
    ]


def giving_way(answers: list[tuple[str, Any]]) -> list[str]:
    """The answers to ids of Globex that tell of it, or break; and those in JSON that say anything.

    A page may show its form again; JSON that is no refusal is what was asked for.
    """
    return [
        f"{answer.status_code} {address} {text_of(answer)}"
        for address, answer in answers
        if tells_of_globex(answer)
        or answer.status_code >= 500
        or (is_granted(answer) and answer.json() != {})
    ]


def is_granted(answer: Any) -> bool:
    return answer["Content-Type"] == "application/json" and answer.status_code < 400


def _not_refused(answers: list[tuple[str, Any]]) -> list[str]:
    return [
        f"{answer.status_code} {address}"
        for address, answer in answers
        if answer.status_code not in (403, 404, 405) or tells_of_globex(answer)
    ]


def tells_of_globex(response: Any) -> bool:
    return "globex" in text_of(response).lower()


def telling(client: Client, addresses: list[str]) -> list[str]:
    return [address for address in addresses if tells_of_globex(client.get(address))]


def plain(model: type) -> list[str]:
    return [address.of({}, None) for address in list_addresses(model)]


def plain_of_all() -> list[str]:
    return [address for model in OURS for address in plain(model)]


def of_row(model: type, rows: dict[type, Any]) -> list[str]:
    return [address.of(rows, rows[model]) for address in object_addresses(model)]


def of_rows(rows: dict[type, Any]) -> list[str]:
    return [address for model in OURS for address in of_row(model, rows)]


# --- The walk covers everything -------------------------------------------------------------------


def test_every_address_that_is_no_models_is_named_with_its_tests() -> None:
    names = {pattern.name for pattern in site_patterns() if pattern.name}

    assert names == set(SITE_ADDRESSES)


def test_only_djangos_own_addresses_have_no_name() -> None:
    models = [admin.site.get_model_admin(model) for model in REGISTERED]
    patterns = [*site_patterns(), *(p for model_admin in models for p in model_admin.get_urls())]

    assert {str(pattern.pattern) for pattern in patterns if not pattern.name} == UNNAMED


def test_there_is_a_row_of_each_model_to_walk(globex_objects: dict[type, Any]) -> None:
    assert set(globex_objects) == set(OURS)


def test_a_superuser_opens_pages_refused_to_bob(
    as_root: Client, globex_objects: dict[type, Any]
) -> None:
    answers = {model: as_root.get(page_of(globex_objects[model])) for model in OURS}

    assert [model for model, answer in answers.items() if answer.status_code != 200] == []


# --- bob, administrator of Acme -------------------------------------------------------------------


def test_bob_opens_no_page_of_a_row_of_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    assert opened(as_bob, of_rows(globex_objects)) == []


def test_bob_sends_no_form_to_a_row_of_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    form, before = foreign_form(globex_objects), everything()

    assert answered(as_bob, of_rows(globex_objects), form) == []
    assert everything() == before
    assert mail.outbox == []


@pytest.mark.slow
@by_model
def test_bob_sends_ids_of_globex_to_his_own_rows_and_nothing_moves(
    as_bob: Client,
    acme_objects: dict[type, Any],
    globex_objects: dict[type, Any],
    model: type,
) -> None:
    form, before = foreign_form(globex_objects), rows_of_globex(globex_objects)

    assert giving_way(sent(as_bob, of_row(model, acme_objects), form)) == []
    assert rows_of_globex(globex_objects) == before


def test_ids_of_globex_in_addresses_of_own_rows_reveal_nothing(
    as_bob: Client, acme_objects: dict[type, Any], globex_objects: dict[type, Any]
) -> None:
    form = foreign_form(globex_objects)

    answers = [(address, as_bob.get(address, form)) for address in of_rows(acme_objects)]

    assert giving_way(answers) == []


def test_bob_makes_nothing_with_ids_of_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    form, before = foreign_form(globex_objects), rows_of_globex(globex_objects)

    assert giving_way(sent(as_bob, plain_of_all(), form)) == []
    assert rows_of_globex(globex_objects) == before


def test_no_list_or_form_of_bob_mentions_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    assert telling(as_bob, plain_of_all()) == []


def test_no_prefilled_form_mentions_globex(as_bob: Client, globex_objects: dict[type, Any]) -> None:
    form = foreign_form(globex_objects)

    answers = [as_bob.get(address, form) for address in plain_of_all()]

    assert [text_of(answer) for answer in answers if tells_of_globex(answer)] == []


def test_a_superuser_sees_rows_hidden_from_bob_in_each_list(
    as_root: Client, as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    assert lists_with_a_row_of(globex_objects, as_root, {}) == OURS
    assert lists_with_a_row_of(globex_objects, as_bob, {}) == []


def test_bob_cannot_search_for_rows_of_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    assert lists_with_a_row_of(globex_objects, as_bob, {"q": "Globex"}) == []


def lists_with_a_row_of(
    rows: dict[type, Any], client: Client, query: dict[str, str]
) -> list[type[Any]]:
    return [
        model
        for model in OURS
        if page_of(rows[model]) in text_of(client.get(list_of(model), query))
    ]


@pytest.mark.parametrize(("model", "action"), LIST_ACTIONS)
def test_bob_cannot_act_on_a_row_of_globex(
    as_bob: Client, globex_objects: dict[type, Any], model: type, action: str
) -> None:
    before = everything()

    chosen = as_bob.post(list_of(model), action_on(globex_objects[model], action))
    across = as_bob.post(
        list_of(model), action_on(globex_objects[model], action, select_across="1", index="0")
    )

    assert (chosen.status_code, across.status_code) in {(302, 302), (200, 200), (302, 200)}
    assert not tells_of_globex(chosen)
    assert not tells_of_globex(across)
    after = everything()
    assert [table for table in before if after[table] != before[table]] in ([], ["LogEntry"])


def test_no_autocomplete_offers_bob_rows_of_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    answers = [
        (field, offers(as_bob, field, term))
        for field in AUTOCOMPLETES
        for term in ("", "globex", id_of_globex(field, globex_objects))
    ]

    assert any(answer.status_code == 200 for _, answer in answers)
    assert [str(field) for field, answer in answers if tells_of_globex(answer)] == []
    assert [str(field) for field, answer in answers if "charlie" in text_of(answer)] == []


def id_of_globex(field: ForeignKey[Any], rows: dict[type, Any]) -> str:
    """The id of its row that the field could refer to."""
    return str(rows.get(field.related_model, rows[Organisation]).pk)


def offers(client: Client, field: ForeignKey[Any], term: str) -> Any:
    query = {
        "app_label": field.model._meta.app_label,
        "model_name": field.model._meta.model_name,
        "field_name": field.name,
        "term": term,
    }
    return client.get(reverse("admin:autocomplete"), query)


def test_an_autocomplete_offers_bob_his_rows(as_bob: Client, acme_script: Script) -> None:
    query = {"app_label": "scripts_engine", "model_name": "hook", "field_name": "script"}

    response = as_bob.get(reverse("admin:autocomplete"), query | {"term": ""})

    assert [result["id"] for result in json.loads(response.content)["results"]] == [
        str(acme_script.pk)
    ]


def test_a_filter_typed_by_hand_names_nothing_of_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    for model, field in TYPED_FILTERS:
        chosen = {f"{field}__id__exact": str(globex_objects[CHOSEN[field]].pk)}

        response = as_bob.get(list_of(model), chosen)

        assert response.status_code == 200, (model, field)
        assert not tells_of_globex(response), (model, field)


def test_a_filter_by_another_organisation_does_not_reveal_its_members(
    as_bob: Client, dora: User, globex: Organisation
) -> None:
    at_acme = as_bob.get(list_of(User))
    at_globex = as_bob.get(list_of(User), {"memberships__organisation__id__exact": str(globex.pk)})

    assert "dora@example.com" in text_of(at_acme)
    assert "dora@example.com" not in text_of(at_globex)


@pytest.mark.parametrize(
    ("model", "lookup"),
    [
        (User, "password__startswith"),
        (User, "organisations__name__startswith"),
        (User, "memberships__role"),
        (ApiKey, "digest__startswith"),
        (Session, "digest__startswith"),
        (Hook, "script__organisation__api_keys__digest__startswith"),
    ],
)
def test_no_lookup_but_the_offered_filters_is_answered(
    as_root: Client, model: type, lookup: str
) -> None:
    assert as_root.get(list_of(model), {lookup: "a"}).status_code == 400


@pytest.mark.parametrize(
    ("model", "field", "of"),
    [
        (ApiKey, "organisation", Organisation),
        (Script, "organisation", Organisation),
        (User, "organisation", Organisation),
        (Hook, "script", Script),
    ],
)
def test_a_new_row_cannot_be_put_into_globex(
    as_bob: Client,
    globex_objects: dict[type, Any],
    model: type,
    field: str,
    of: type,
) -> None:
    before = everything()

    response = as_bob.post(
        list_of(model, "add"),
        {
            field: str(globex_objects[of].pk),
            "name": "Bob's",
            "email": "new@example.com",
            "role": "member",
            "source": "",
            "timeout_seconds": "1",
        },
    )

    assert response.status_code == 200
    assert "Select a valid choice" in text_of(response)
    assert everything() == before


def test_bobs_home_shows_nothing_of_globex(as_bob: Client, globex_objects: dict[type, Any]) -> None:
    response = as_bob.get(reverse("admin:index"))

    assert response.status_code == 200
    assert not tells_of_globex(response)


def test_the_menus_search_finds_nothing_of_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    assert not tells_of_globex(as_bob.get(reverse("admin:search"), {"s": "globex"}))


@pytest.mark.parametrize("app", ["accounts", "sessions_api", "scripts_engine"])
def test_the_list_of_an_apps_models_leads_home(
    as_bob: Client, globex_objects: dict[type, Any], app: str
) -> None:
    response = as_bob.get(reverse("admin:app_list", args=[app]))

    assert (response.status_code, response["Location"]) == (302, reverse("admin:index"))
    assert not tells_of_globex(response)


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


# --- erin, of the staff, who administers nothing --------------------------------------------------


def test_staff_without_an_organisation_open_no_list(
    as_erin: Client, globex_objects: dict[type, Any]
) -> None:
    before = everything()
    addresses = [address for model in REGISTERED for address in plain(model)]

    assert opened(as_erin, addresses) == []
    assert answered(as_erin, addresses, foreign_form(globex_objects)) == []
    assert everything() == before


def test_staff_without_an_organisation_open_no_row(
    as_erin: Client, acme_objects: dict[type, Any], globex_objects: dict[type, Any]
) -> None:
    before = everything()
    addresses = of_rows(acme_objects) + of_rows(globex_objects)

    assert opened(as_erin, addresses) == []
    assert answered(as_erin, addresses, foreign_form(globex_objects)) == []
    assert everything() == before
    assert mail.outbox == []


def test_the_home_page_of_staff_without_an_organisation_is_empty(
    as_erin: Client, acme_objects: dict[type, Any], globex_objects: dict[type, Any]
) -> None:
    text = text_of(as_erin.get(reverse("admin:index")))

    assert "You are not an administrator of any organisation" in text
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
    client, before = logged_in(alice), everything()

    assert left_the_login(client, addresses, form) == []
    assert everything() == before


def test_a_stranger_is_sent_to_the_login(acme_objects: dict[type, Any]) -> None:
    addresses = plain_of_all() + of_rows(acme_objects)
    addresses += [reverse(f"admin:{name}") for name in ("index", "search", "message_delivery")]
    before = everything()

    assert left_the_login(Client(), addresses, foreign_form(acme_objects)) == []
    assert everything() == before


def test_the_walk_sees_a_page_that_lets_somebody_in(
    as_root: Client, globex_objects: dict[type, Any]
) -> None:
    assert opened(as_root, of_row(Script, globex_objects)) != []
