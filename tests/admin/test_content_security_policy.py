"""Every response of the admin, and no other, has the Content-Security-Policy."""

from typing import Any

import pytest
from django.test import RequestFactory
from django.urls import reverse

from accounts.models import Organisation, User
from core.http.admin_pages import admin_policy
from core.http.problem_handlers import server_error
from hooks.models import Hook
from scripts_engine.models import Script
from tests import factories
from tests.admin.addresses import (
    REGISTERED,
    SITE_ADDRESSES,
    list_addresses,
    object_addresses,
)
from tests.admin.pages import list_of
from tests.client import Client

HEADER = "Content-Security-Policy"
POLICY = admin_policy("testserver")
WITH_ARGUMENTS = {"app_list": ["accounts"], "moved": ["scripts_engine/hook", ""]}


def without_policy(client: Client, addresses: list[str]) -> list[str]:
    """The addresses of which an answer, to GET or to an empty POST, has no policy or another."""
    return [
        f"{method.__name__} {address}"
        for address in addresses
        for method in (client.get, client.post)
        if method(address).headers.get(HEADER) != POLICY
    ]


def site_addresses() -> list[str]:
    return [reverse(f"admin:{name}", args=WITH_ARGUMENTS.get(name)) for name in SITE_ADDRESSES]


def directives_for(host: str | None) -> dict[str, str]:
    return dict(part.split(" ", 1) for part in admin_policy(host).split("; "))


def test_sources_name_paths_of_this_server_and_none_of_hooks(settings: Any) -> None:
    settings.PUBLIC_URL = "https://hooks.example.com"

    assert directives_for("hooks.example.com") == {
        "default-src": "'none'",
        "script-src": "hooks.example.com/static/ hooks.example.com/admin/jsi18n/ 'unsafe-eval'",
        "script-src-attr": "'none'",
        "worker-src": "'none'",
        "style-src": "hooks.example.com/static/ 'unsafe-inline'",
        "img-src": "hooks.example.com/static/ data:",
        "font-src": "hooks.example.com/static/",
        "connect-src": "hooks.example.com/admin/",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "hooks.example.com/admin/",
        "frame-ancestors": "'none'",
    }


@pytest.mark.parametrize(
    ("host", "pages"),
    [
        ("10.1.2.3:8000", "10.1.2.3:8000/admin/ hooks.example.com:8443/admin/"),
        # A proxy may pass the host without its port.
        ("hooks.example.com", "hooks.example.com/admin/ hooks.example.com:8443/admin/"),
        ("hooks.example.com:8443", "hooks.example.com:8443/admin/"),
        ("[::1]:8000", "'self'"),
        (None, "'self'"),
    ],
)
def test_sources_name_the_host_of_the_request_and_the_public_one(
    settings: Any, host: str | None, pages: str
) -> None:
    settings.PUBLIC_URL = "https://hooks.example.com:8443"

    assert directives_for(host)["connect-src"] == pages


def test_a_page_names_the_host_that_it_is_asked_of(as_bob: Client, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["moonhook.internal"]

    response = as_bob.get("/admin/", headers={"Host": "moonhook.internal:81"})

    assert (response.status_code, response[HEADER]) == (200, admin_policy("moonhook.internal:81"))


@pytest.mark.parametrize("host", ["a; script-src *", "a/hook/", "a b", "a,b", "a'*", "é", "[::1"])
def test_a_host_adds_nothing_to_the_policy(db: None, settings: Any, host: str) -> None:
    settings.ALLOWED_HOSTS = ["*"]

    response = Client().get("/admin/login/", headers={"Host": host})

    assert (response.status_code, response[HEADER]) == (400, admin_policy(None))


@pytest.mark.parametrize("path", ["/static/%s", "/static/..%%2F%s", "/admin/jsi18n/%s"])
def test_no_path_of_scripts_redirects(as_bob: Client, path: str) -> None:
    """A policy compares no paths after a redirect."""
    addresses = [path % end for end in ("", "hook/a/b/c", "..%2Fhook/a/b/c", "//elsewhere.example")]

    statuses = {as_bob.get(address).status_code for address in addresses}

    assert statuses <= {200, 404}


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

    assert (response.status_code, response[HEADER]) == (status, POLICY)


def test_a_form_without_its_token_is_refused_with_the_policy(bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)

    response = client.post(list_of(Script, "add"), {"name": "x"})

    assert (response.status_code, response[HEADER]) == (403, POLICY)


def test_a_wrong_host_is_refused_with_the_policy(db: None) -> None:
    response = Client().get("/admin/login/", headers={"Host": "a b"})

    assert (response.status_code, response[HEADER]) == (400, admin_policy(None))


def test_an_unexpected_error_has_the_policy() -> None:
    response = server_error(RequestFactory().get("/admin/"))

    assert (response.status_code, response[HEADER]) == (500, POLICY)


def test_the_editors_json_has_the_policy(as_bob: Client, acme: Organisation) -> None:
    body = {"organisation": str(acme.pk), "source": "return 1"}

    response = as_bob.post(
        reverse("admin:scripts_engine_script_check"), body, content_type="application/json"
    )

    assert response["Content-Type"] == "application/json"
    assert (response.status_code, response[HEADER]) == (200, POLICY)


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
