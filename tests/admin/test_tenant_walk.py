"""bob of Acme types the addresses of everything that Globex owns, and gets nothing."""

from typing import Any

import pytest
from django.contrib import admin
from django.db.models import ForeignKey
from django.test import Client
from django.urls import reverse

from accounts.models import ApiKey, AuthEvent, Organisation, User
from scripts_engine.models import Hook, Run, Script, ScriptVersion
from sessions_api.models import Session
from tests.admin.pages import (
    CONFIRMED,
    OUR_MODELS,
    action_on,
    everything,
    list_of,
    nothing_inlined,
    page_of,
    text_of,
)

REGISTERED = [model for model in OUR_MODELS if admin.site.is_registered(model)]

OBJECT_PAGES = [
    pytest.param(model, pattern.name, id=pattern.name)
    for model in REGISTERED
    for pattern in admin.site.get_model_admin(model).get_urls()
    if pattern.name and pattern.pattern.converters
]
LIST_ACTIONS = [
    pytest.param(model, action, id=f"{model.__name__}-{action}")
    for model in REGISTERED
    for action in admin.site.get_model_admin(model).actions or ()
]
AUTOCOMPLETES = [
    pytest.param(field, id=str(field))
    for model in OUR_MODELS
    for field in model._meta.get_fields()
    if isinstance(field, ForeignKey)
]
TYPED_FILTERS = [
    pytest.param(ApiKey, "organisation__id__exact", Organisation, id="keys-of-organisation"),
    pytest.param(Script, "organisation__id__exact", Organisation, id="scripts-of-organisation"),
    pytest.param(Hook, "script__id__exact", Script, id="hooks-of-script"),
    pytest.param(Run, "script__id__exact", Script, id="runs-of-script"),
    pytest.param(Run, "hook__id__exact", Hook, id="runs-of-hook"),
    pytest.param(ScriptVersion, "script__id__exact", Script, id="versions-of-script"),
    pytest.param(AuthEvent, "user__id__exact", User, id="events-of-user"),
    pytest.param(Session, "api_key__id__exact", ApiKey, id="sessions-of-key"),
    pytest.param(
        User, "memberships__organisation__id__exact", Organisation, id="users-of-organisation"
    ),
]


@pytest.mark.parametrize(("model", "page"), OBJECT_PAGES)
def test_bob_cannot_open_a_page_of_globex(
    as_bob: Client, globex_objects: dict[type, Any], model: type, page: str
) -> None:
    response = as_bob.get(reverse(f"admin:{page}", args=[globex_objects[model].pk]))

    assert response.status_code in (403, 404)
    assert "globex" not in text_of(response).lower()


@pytest.mark.parametrize(("model", "page"), OBJECT_PAGES)
def test_bob_cannot_send_a_form_to_a_page_of_globex(
    as_bob: Client, globex_objects: dict[type, Any], model: type, page: str
) -> None:
    before = everything()

    response = as_bob.post(
        reverse(f"admin:{page}", args=[globex_objects[model].pk]),
        {
            **CONFIRMED,
            **nothing_inlined(),
            "post": "yes",
            "name": "Bob's",
            "email": "b@example.com",
        },
    )

    assert response.status_code in (403, 404)
    assert "globex" not in text_of(response).lower()
    assert everything() == before


@pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)
def test_root_sees_in_each_list_what_bob_does_not(
    as_root: Client, as_bob: Client, globex_objects: dict[type, Any], model: type
) -> None:
    address = page_of(globex_objects[model])

    assert address in text_of(as_root.get(list_of(model)))
    assert address not in text_of(as_bob.get(list_of(model)))
    assert "globex" not in text_of(as_bob.get(list_of(model))).lower()


@pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)
def test_bob_cannot_search_for_what_is_globexs(
    as_bob: Client, globex_objects: dict[type, Any], model: type
) -> None:
    response = as_bob.get(list_of(model), {"q": "Globex"})

    assert page_of(globex_objects[model]) not in text_of(response)


@pytest.mark.parametrize(("model", "action"), LIST_ACTIONS)
def test_bob_cannot_act_on_a_row_of_globex(
    as_bob: Client, globex_objects: dict[type, Any], model: type, action: str
) -> None:
    before = everything()

    response = as_bob.post(list_of(model), action_on(globex_objects[model], action))

    assert response.status_code == 302
    assert everything() == before


@pytest.mark.parametrize("field", AUTOCOMPLETES)
def test_no_autocomplete_offers_bob_what_is_globexs(
    as_bob: Client, globex_objects: dict[type, Any], field: Any
) -> None:
    response = as_bob.get(
        reverse("admin:autocomplete"),
        {
            "app_label": field.model._meta.app_label,
            "model_name": field.model._meta.model_name,
            "field_name": field.name,
            "term": "",
        },
    )

    assert "globex" not in text_of(response).lower()
    assert "charlie" not in text_of(response)


@pytest.mark.parametrize(("model", "parameter", "chosen"), TYPED_FILTERS)
def test_a_filter_typed_by_hand_names_nothing_of_globex(
    as_bob: Client,
    globex_objects: dict[type, Any],
    model: type,
    parameter: str,
    chosen: type,
) -> None:
    response = as_bob.get(list_of(model), {parameter: str(globex_objects[chosen].pk)})

    assert response.status_code == 200
    assert "globex" not in text_of(response).lower()


def test_a_filter_by_another_organisation_does_not_tell_who_else_is_its_member(
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


@pytest.mark.parametrize(
    ("model", "field", "of"),
    [(ApiKey, "organisation", Organisation), (Hook, "script", Script)],
)
def test_a_form_filled_by_its_address_does_not_name_what_is_globexs(
    as_bob: Client,
    globex_objects: dict[type, Any],
    model: type,
    field: str,
    of: type,
) -> None:
    response = as_bob.get(list_of(model, "add"), {field: str(globex_objects[of].pk)})

    assert response.status_code == 200
    assert "globex" not in text_of(response).lower()


def test_bobs_home_shows_nothing_of_globex(as_bob: Client, globex_objects: dict[type, Any]) -> None:
    response = as_bob.get(reverse("admin:index"))

    assert response.status_code == 200
    assert "globex" not in text_of(response).lower()


@pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)
def test_staff_who_administer_nothing_see_no_list(
    as_erin: Client, globex_objects: dict[type, Any], model: type
) -> None:
    assert as_erin.get(list_of(model)).status_code == 403


@pytest.mark.parametrize(("model", "page"), OBJECT_PAGES)
def test_staff_who_administer_nothing_see_no_page(
    as_erin: Client, globex_objects: dict[type, Any], model: type, page: str
) -> None:
    response = as_erin.get(reverse(f"admin:{page}", args=[globex_objects[model].pk]))

    assert response.status_code in (403, 404)


def test_background_tasks_are_for_superusers(as_bob: Client, as_root: Client) -> None:
    address = reverse("admin:django_tasks_database_dbtaskresult_changelist")

    assert as_root.get(address).status_code == 200
    assert as_bob.get(address).status_code == 403


def test_who_is_not_staff_is_sent_to_the_login(alice: User) -> None:
    client = Client()
    client.force_login(alice)

    response = client.get(list_of(Script))

    assert response.status_code == 302
    assert response["Location"].startswith(reverse("admin:login"))
