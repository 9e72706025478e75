"""bob of Acme types the addresses of everything that Globex owns, and gets nothing.

The addresses are read from the admin's own table of them, so that a new page is walked by itself.
"""

import json
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.db.models import ForeignKey
from django.test import Client
from django.urls import reverse

from accounts.models import ApiKey, Organisation, User
from hooks.models import Hook
from scripts_engine.models import Plan, Script
from sessions_api.models import Session
from tests.admin.addresses import (
    REGISTERED,
    SITE_ADDRESSES,
    UNNAMED,
    site_patterns,
)
from tests.admin.pages import (
    action_on,
    everything,
    list_of,
    page_of,
    text_of,
)
from tests.admin.walk import (
    OURS,
    answered,
    foreign_form,
    of_row,
    of_rows,
    opened,
    plain_of_all,
    sent,
    tells_of_globex,
)
from tests.written import nothing_written

by_model = pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
AUTOCOMPLETES = [
    field
    for model in apps.get_models()
    for field in model._meta.get_fields()
    if isinstance(field, ForeignKey)
]
LIST_ACTIONS = [
    (model, action)
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


def telling(client: Client, addresses: list[str]) -> list[str]:
    return [address for address in addresses if tells_of_globex(client.get(address))]


# --- The walk covers everything -------------------------------------------------------------------


def test_every_address_that_is_no_models_is_named_with_its_tests() -> None:
    names = {pattern.name for pattern in site_patterns() if pattern.name}

    assert names == set(SITE_ADDRESSES)


def test_only_djangos_own_addresses_have_no_name() -> None:
    models = [admin.site.get_model_admin(model) for model in REGISTERED]
    patterns = [*site_patterns(), *(p for model_admin in models for p in model_admin.get_urls())]

    assert {str(pattern.pattern) for pattern in patterns if not pattern.name} == UNNAMED


def test_there_is_a_row_of_each_model_to_walk(globex_objects: dict[type, Any]) -> None:
    # A plan has no list, and its page is one of those of releases.
    assert set(globex_objects) == {*OURS, Plan}


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
    form = foreign_form(globex_objects)
    with nothing_written():
        assert answered(as_bob, of_rows(globex_objects), form) == []
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


def test_bob_cannot_act_on_a_row_of_globex(as_bob: Client, globex_objects: dict[type, Any]) -> None:
    with nothing_written(besides=LogEntry):
        answers = [
            (model, action, *acted_on(as_bob, globex_objects[model], action))
            for model, action in LIST_ACTIONS
        ]

    assert len(answers) > len(OURS)
    assert [
        (model, action, chosen.status_code, across.status_code)
        for model, action, chosen, across in answers
        if (chosen.status_code, across.status_code) not in {(302, 302), (200, 200), (302, 200)}
    ] == []
    assert [
        (model, action)
        for model, action, *both in answers
        if any(tells_of_globex(answer) for answer in both)
    ] == []


def acted_on(client: Client, row: Any, action: str) -> tuple[Any, Any]:
    """The answers to an action on one row, and on all rows of the list."""
    page = list_of(type(row))
    across = action_on(row, action, select_across="1", index="0")
    return client.post(page, action_on(row, action)), client.post(page, across)


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
    query = {"app_label": "hooks", "model_name": "hook", "field_name": "script"}

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


NEW_ROW = {
    "name": "Bob's",
    "email": "new@example.com",
    "role": "member",
    "source": "",
    "timeout_seconds": "1",
}
PLACES = [
    (ApiKey, "organisation", Organisation),
    (Script, "organisation", Organisation),
    (User, "organisation", Organisation),
    (Hook, "script", Script),
]


def test_a_new_row_cannot_be_put_into_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    with nothing_written():
        answers = [
            (model, as_bob.post(list_of(model, "add"), NEW_ROW | {field: globex_objects[of].pk}))
            for model, field, of in PLACES
        ]

    assert [(model, answer.status_code) for model, answer in answers] == [
        (model, 200) for model, _, _ in PLACES
    ]
    assert [
        model for model, answer in answers if "Select a valid choice" not in text_of(answer)
    ] == []


def test_bobs_home_shows_nothing_of_globex(as_bob: Client, globex_objects: dict[type, Any]) -> None:
    response = as_bob.get(reverse("admin:index"))

    assert response.status_code == 200
    assert not tells_of_globex(response)


def test_the_menus_search_finds_nothing_of_globex(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    assert not tells_of_globex(as_bob.get(reverse("admin:search"), {"s": "globex"}))


def test_the_list_of_an_apps_models_leads_home(
    as_bob: Client, globex_objects: dict[type, Any]
) -> None:
    answers = {
        app: as_bob.get(reverse("admin:app_list", args=[app]))
        for app in ("accounts", "sessions_api", "scripts_engine", "jobs", "hooks")
    }

    assert {
        app: (answer.status_code, answer["Location"]) for app, answer in answers.items()
    } == dict.fromkeys(answers, (302, reverse("admin:index")))
    assert not any(tells_of_globex(answer) for answer in answers.values())
