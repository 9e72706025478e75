"""Malformed ids and NUL on every page of the admin: refused, never an error of the server.

The addresses are read from the admin's own table of them, so that a new page is walked by itself.
"""

import uuid
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.db.models import Field, ForeignKey, Model
from django.test import Client
from django.urls import reverse

from accounts.models import Membership, Organisation, User
from scripts_engine.models import Script
from tests.admin.addresses import REGISTERED, Address, object_addresses
from tests.admin.pages import CONFIRMED, list_of, page_of
from tests.admin.test_list_parameters import offered, request_of
from tests.written import nothing_written

pytestmark = pytest.mark.postgresql

every_model = pytest.mark.parametrize("model", REGISTERED, ids=lambda model: model.__name__)

# Percent-encoded: bytes that are not UTF-8 too. "_00" is NUL as links of the admin write it.
IN_ADDRESSES = ["a%00b", "a_00b", "not-an-id", "%ed%a0%80", "9" * 400]
REFUSED_FORM = {200, 403, 404}
# Pages of libraries redirect to the home page, and say there that the row does not exist.
REFUSED = {302, 403, 404, 405}
TEXTS = ["a\0b", "not-an-id", "9" * 400]


@pytest.fixture
def as_root(as_root: Client) -> Client:
    """Sees a page where the server fails, not its exception."""
    as_root.raise_request_exception = False
    return as_root


ANY_ID = str(uuid.UUID(int=7))


def with_id(address: Address, text: str) -> str:
    """The address with that text as each of its ids."""
    ids = dict.fromkeys(address.converters, ANY_ID)
    return reverse(f"admin:{address.name}", kwargs=ids).replace(ANY_ID, text)


def actions_on(model: type[Model], user: User) -> list[str]:
    model_admin: Any = admin.site.get_model_admin(model)
    return list(model_admin.get_actions(request_of(user)))


def malformed_ids(model: type[Model]) -> list[str]:
    """Texts that are no id of the model: keys that are text are looked up as they are."""
    return TEXTS if model._meta.pk.get_internal_type() == "UUIDField" else TEXTS[:1]


def test_an_action_on_a_malformed_id_is_refused(
    as_root: Client, root: User, acme_objects: dict[type, Any]
) -> None:
    forms = [
        (list_of(model), {"action": action, "_selected_action": text, **CONFIRMED})
        for model in REGISTERED
        for action in actions_on(model, root)
        for text in malformed_ids(model)
    ]
    with nothing_written():
        answers = [(page, form, as_root.post(page, form).status_code) for page, form in forms]

    assert len(answers) > len(REGISTERED)
    assert [answer for answer in answers if answer[2] != 400] == []


@pytest.mark.slow
@every_model
def test_a_malformed_id_in_an_address_is_not_found(
    as_root: Client, acme_objects: dict[type, Any], model: type[Model]
) -> None:
    addresses = [with_id(each, text) for each in object_addresses(model) for text in IN_ADDRESSES]
    with nothing_written():
        found = {address: as_root.get(address).status_code for address in addresses}
        sent = {address: as_root.post(address, CONFIRMED).status_code for address in addresses}

    assert set(found.values()) | set(sent.values()) <= REFUSED


def test_nul_in_a_parameter_of_a_list_is_no_error_of_the_server(
    as_root: Client, root: User, acme_objects: dict[type, Any]
) -> None:
    parameters = [
        (list_of(model), name)
        for model in REGISTERED
        for name in [*offered(model, root), "q", "o", "p", "all", "e"]
    ]

    answers = {
        (page, name): as_root.get(page, {name: "a\0b"}).status_code for page, name in parameters
    }

    assert {each: status for each, status in answers.items() if status >= 500} == {}


def autocomplete(client: Client, **query: str) -> int:
    return client.get(f"{reverse('admin:autocomplete')}?{urlencode(query)}").status_code


def test_an_autocomplete_of_a_relation_that_no_form_offers_is_refused(
    as_root: Client, acme_objects: dict[type, Any]
) -> None:
    asked = [
        (model._meta.app_label, model._meta.model_name or "", name)
        for model in REGISTERED
        for name in [
            *(f.name for f in model._meta.get_fields() if not isinstance(f, Field)),
            "pk",
            "nothing",
            "\0",
            "__class__",
        ]
    ]
    asked += [("", "", ""), ("\0", "hook", "script"), ("accounts.User", "a.b", "c")]

    answers = {
        each: autocomplete(
            as_root, app_label=each[0], model_name=each[1], field_name=each[2], term=""
        )
        for each in asked
    }

    assert len(answers) > len(REGISTERED) * 4
    assert {each: status for each, status in answers.items() if status != 403} == {}


def test_an_autocomplete_refuses_nul(as_root: Client, acme_objects: dict[type, Any]) -> None:
    field = {"app_label": "hooks", "model_name": "hook", "field_name": "script"}

    assert autocomplete(as_root, **field, term="Acme") == 200
    assert autocomplete(as_root, **field, term="a\0b") == 403
    assert autocomplete(as_root, **field, term="", page="a\0b") == 404


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("model", [User, Organisation])
def test_a_malformed_id_in_an_inline_form_changes_nothing(
    as_root: Client, acme_objects: dict[type, Any], alice: User, model: type[Model], text: str
) -> None:
    membership = Membership.objects.get(user=acme_objects[User])
    form = {
        "name": "Acme",
        "email": acme_objects[User].email,
        "is_active": "on",
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": text,
        "memberships-0-email": alice.email,
        "memberships-0-user": str(membership.user_id),
        "memberships-0-organisation": str(membership.organisation_id),
        "memberships-0-role": "administrator",
    }
    page, before = page_of(acme_objects[model]), list(Membership.objects.values())

    assert as_root.post(page, form).status_code == 200
    # Django asks nothing of a row that is to go, and there is none.
    assert as_root.post(page, form | {"memberships-0-DELETE": "on"}).status_code == 302
    assert list(Membership.objects.values()) == before


@pytest.mark.parametrize("cookie", ["moonhook_admin", "moonhook_admin_csrf", "messages"])
def test_nul_in_a_cookie_is_a_cookie_of_nobody(root: User, cookie: str) -> None:
    """Cookies can name NUL in octal digits."""
    client = Client(raise_request_exception=False)
    headers = {"Cookie": f'{cookie}="abcdefghijklmnopqrstuvwxyz012345\\000"'}

    assert client.get("/admin/login/", headers=headers).status_code == 200
    assert client.get(list_of(Script), headers=headers).status_code == 302
    assert client.post("/admin/login/", {"username": "a\0"}, headers=headers).status_code < 500


CHOOSING = [
    model
    for model in REGISTERED
    if any(isinstance(field, ForeignKey) for field in model._meta.get_fields())
]


def choosing(model: type[Model], text: str) -> dict[str, str]:
    """A form of a new row that chooses the text wherever the row refers to another."""
    names = [f.name for f in model._meta.get_fields() if isinstance(f, ForeignKey)]
    return dict.fromkeys([*names, "organisation"], text)


def test_a_malformed_id_chosen_in_a_form_is_refused(
    as_root: Client, acme_objects: dict[type, Any]
) -> None:
    """The form is shown again, with what was chosen."""
    with nothing_written():
        answers = {
            (model, text): as_root.post(list_of(model, "add"), choosing(model, text)).status_code
            for model in CHOOSING
            for text in [*TEXTS, "[]"]
        }

    assert {each: status for each, status in answers.items() if status not in REFUSED_FORM} == {}


@pytest.mark.parametrize("text", [*TEXTS, "[]"])
def test_a_malformed_id_chosen_in_a_new_inline_form_is_refused(
    as_root: Client, acme_objects: dict[type, Any], text: str
) -> None:
    user = acme_objects[User]
    form = {
        "email": user.email,
        "is_active": "on",
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-0-user": str(user.pk),
        "memberships-0-organisation": text,
        "memberships-0-role": "administrator",
    }
    with nothing_written():
        assert as_root.post(page_of(user), form).status_code == 200


def test_an_empty_name_of_a_field_means_the_primary_key(
    as_root: Client, acme_objects: dict[type, Any]
) -> None:
    pages = [
        each.of(acme_objects, acme_objects.get(model) or model(pk=uuid.uuid4()))
        for model in REGISTERED
        for each in object_addresses(model)
        if each.name.endswith(("_change", "_delete"))
    ]

    answers = {page: as_root.get(page, {"_to_field": ""}).status_code for page in pages}

    assert len(answers) >= len(REGISTERED)
    assert answers == {page: as_root.get(page).status_code for page in pages}
