"""Empty states, help texts and field descriptions."""

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from accounts.models import ApiKey, Organisation, User
from scripts_engine.models import Script, Secret
from tests.admin.addresses import REGISTERED
from tests.admin.pages import OUR_MODELS, list_of, text_of

OURS = [model for model in REGISTERED if model in OUR_MODELS]
WITH_FORM = [
    model for model in OURS if list_of(model, "add") and model in {ApiKey, User, Script, Secret}
]


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_every_list_has_its_own_empty_state(model: type) -> None:
    empty = admin.site.get_model_admin(model).empty_state

    assert len(empty.text) > 40
    assert bool(empty.button) == bool(empty.page)
    assert not empty.page or reverse(empty.page)


def test_an_empty_list_says_what_to_do_and_offers_it(as_bob: Client) -> None:
    text = text_of(as_bob.get(list_of(ApiKey)))

    assert "Create one key per program" in text
    assert f'href="{list_of(ApiKey, "add")}"' in text
    assert "No results" not in text


@pytest.mark.parametrize("query", [{"q": "nothing"}, {"is_enabled__exact": "0"}])
def test_a_list_without_matches_offers_to_clear_filters(
    as_bob: Client, acme_script: Script, query: dict[str, str]
) -> None:
    text = text_of(as_bob.get(list_of(Script), query))

    assert "No matches" in text
    assert "Clear search and filters" in text
    assert "A script is a Lua program" not in text


@pytest.mark.parametrize("model", WITH_FORM, ids=lambda model: model.__name__)
def test_every_field_of_an_add_form_has_a_help_text(as_root: Client, model: type) -> None:
    form: Any = as_root.get(list_of(model, "add")).context["adminform"].form

    shown = {name: field for name, field in form.fields.items() if not field.widget.is_hidden}
    assert [name for name, field in shown.items() if len(str(field.help_text)) < 25] == []


def test_a_field_is_described_by_its_help_text_and_error(as_bob: Client, bob: User) -> None:
    text = text_of(as_bob.post(list_of(User, "add"), {"phone": "0170"}))

    assert 'aria-describedby="id_phone_helptext id_phone_error"' in text
    assert 'id="id_phone_helptext"' in text
    assert 'id="id_phone_error"' in text


def test_an_organisations_page_explains_deactivation(as_root: Client, acme: Organisation) -> None:
    address = reverse("admin:accounts_organisation_change", args=[acme.pk])

    assert "keys, sessions and hooks are refused immediately" in text_of(as_root.get(address))
