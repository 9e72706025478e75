"""Every response of the admin, and no other, has the Content-Security-Policy."""

from typing import Any

import pytest
from django.test import RequestFactory
from django.urls import reverse

from accounts.models import Organisation, User
from core.http.admin_pages import ADMIN_POLICY
from core.http.problem_handlers import server_error
from scripts_engine.models import Hook, Script
from tests import factories
from tests.admin.addresses import (
    REGISTERED,
    SITE_ADDRESSES,
    list_addresses,
    object_addresses,
)
from tests.admin.pages import list_of
from tests.client import Client
from tests.one_of_each import one_of_each

HEADER = "Content-Security-Policy"
WITH_ARGUMENTS = {"app_list": ["accounts"]}


@pytest.fixture
def acme_objects(acme: Organisation, bob: User) -> dict[type, Any]:
    return one_of_each(acme)


def without_policy(client: Client, addresses: list[str]) -> list[str]:
    """The addresses of which an answer, to GET or to an empty POST, has no policy or another."""
    return [
        f"{method.__name__} {address}"
        for address in addresses
        for method in (client.get, client.post)
        if method(address).headers.get(HEADER) != ADMIN_POLICY
    ]


def site_addresses() -> list[str]:
    return [reverse(f"admin:{name}", args=WITH_ARGUMENTS.get(name)) for name in SITE_ADDRESSES]


def test_the_policy_lets_scripts_come_from_files_of_this_server_alone() -> None:
    directives = dict(part.split(" ", 1) for part in ADMIN_POLICY.split("; "))

    assert directives == {
        "default-src": "'none'",
        "script-src": "'self' 'unsafe-eval'",
        "script-src-attr": "'none'",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }


@pytest.mark.slow
def test_every_address_has_the_policy(as_root: Client, acme_objects: dict[type, Any]) -> None:
    addresses = [a.of({}, None) for model in REGISTERED for a in list_addresses(model)]
    addresses += [
        address.of(acme_objects, row)
        for model, row in acme_objects.items()
        for address in object_addresses(model)
    ]

    assert len(addresses) > 50
    assert without_policy(as_root, addresses) == []


def test_every_address_that_is_no_models_has_the_policy(as_root: Client, root: User) -> None:
    assert without_policy(Client(), site_addresses()) == []
    assert without_policy(as_root, site_addresses()) == []


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/admin/scripts_engine/script/?nothing=1", 400),
        ("/admin/scripts_engine/run/add/", 403),
        ("/admin/nowhere/", 404),
    ],
)
def test_a_refusal_has_the_policy(as_bob: Client, address: str, status: int) -> None:
    response = as_bob.get(address)

    assert (response.status_code, response[HEADER]) == (status, ADMIN_POLICY)


def test_a_form_without_its_token_is_refused_with_the_policy(bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)

    response = client.post(list_of(Script, "add"), {"name": "x"})

    assert (response.status_code, response[HEADER]) == (403, ADMIN_POLICY)


def test_a_wrong_host_is_refused_with_the_policy(db: None) -> None:
    response = Client().get("/admin/login/", headers={"Host": "a b"})

    assert (response.status_code, response[HEADER]) == (400, ADMIN_POLICY)


def test_an_unexpected_error_has_the_policy() -> None:
    response = server_error(RequestFactory().get("/admin/"))

    assert (response.status_code, response[HEADER]) == (500, ADMIN_POLICY)


def test_the_editors_json_has_the_policy(as_bob: Client, acme: Organisation) -> None:
    body = {"organisation": str(acme.pk), "source": "return 1"}

    response = as_bob.post(
        reverse("admin:scripts_engine_script_check"), body, content_type="application/json"
    )

    assert response["Content-Type"] == "application/json"
    assert (response.status_code, response[HEADER]) == (200, ADMIN_POLICY)


@pytest.mark.parametrize(
    "address", ["/admin/graphql", "/user/graphql", "/session", "/healthz", "/openapi.json", "/x"]
)
def test_responses_to_programs_have_no_policy(db: None, address: str) -> None:
    assert HEADER not in Client().get(address)


def test_a_hooks_reply_keeps_its_own(acme: Organisation) -> None:
    issued = factories.make_hook(factories.make_script(acme, "return '<h1>x</h1>'"))
    hook: Hook = issued.hook

    response = Client().get(f"/hook/{acme.pk}/{hook.script_id}/{issued.call_token}")

    assert (response.status_code, response[HEADER]) == (200, "sandbox")
