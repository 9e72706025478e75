"""The OpenAPI document: how it is served, and whether it matches the code.

tests/conformance compares it with a running server.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.urls import resolve

import sessions_api.urls
from core.http.problems import meaning, registered_codes
from hooks.edge import wsgi
from sessions_api.models import Credential
from sessions_api.views import OpenSessionSerializer
from tests.client import Client

FILE = settings.BASE_DIR / "docs/openapi.json"
DOCUMENT = json.loads(FILE.read_text())
COMPONENTS = DOCUMENT["components"]
PATHS = {
    path: path.format(organisation="o", script="s", token="t", digest="0" * 64)
    for path in DOCUMENT["paths"]
}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def documented_problems(response: dict[str, Any]) -> tuple[int, list[str]]:
    schema = response["content"]["application/problem+json"]["schema"]
    [base, narrowed] = schema["allOf"]
    assert base == {"$ref": "#/components/schemas/Problem"}
    return narrowed["properties"]["status"]["const"], narrowed["properties"]["code"]["enum"]


# A script that asks to be called again has failed too.
WITH_ANOTHER_STATUS = {503: {"script-failed"}}
PROBLEMS = {
    name: documented_problems(response)
    for name, response in COMPONENTS["responses"].items()
    if name != "Reply"
}


def test_the_document_is_served_to_everyone_and_to_caches(client: Client) -> None:
    response = client.get("/openapi.json")

    assert response.status_code == 200
    assert response["Content-Type"] == "application/vnd.oai.openapi+json;version=3.1"
    assert response["Cache-Control"] == "public, max-age=3600"
    assert response.content == FILE.read_bytes()
    assert (
        client.get("/openapi.json", headers={"If-None-Match": response["ETag"]}).status_code == 304
    )


def test_the_image_contains_the_document() -> None:
    ignored = (settings.BASE_DIR / ".dockerignore").read_text().splitlines()

    assert ignored.index("docs/*") < ignored.index("!docs/openapi.json")
    assert ignored.index("docs/*") < ignored.index("!docs/schemas")


def test_every_endpoint_is_documented() -> None:
    of_hooks = [path for path in PATHS.values() if path.startswith("/hook/")]
    others = set(PATHS.values()) - set(of_hooks)

    assert {wsgi.resolve(path)[0] for path in of_hooks} == {wsgi.HOOK, wsgi.HOOK_SECURE}
    assert {resolve(path).url_name for path in others} == {
        "blob",
        *(pattern.name for pattern in sessions_api.urls.urlpatterns),
    }


@pytest.mark.parametrize("path", PATHS)
def test_the_documented_methods_are_those_of_the_endpoint(path: str, client: Client) -> None:
    operations = DOCUMENT["paths"][path].keys() - {"parameters"}

    response = client.patch(PATHS[path])

    assert response.status_code == 405
    # HEAD /session is described with GET.
    assert {method.upper() for method in operations} | {"HEAD"} == {
        *response["Allow"].split(", "),
        "HEAD",
    }


@pytest.mark.parametrize("path", PATHS)
def test_the_documented_allow_header_is_the_one_sent(path: str, client: Client) -> None:
    item = DOCUMENT["paths"][path]
    operation = next(item[method] for method in ("post", "get", "put") if method in item)
    reference = operation["responses"]["405"]["$ref"]
    refusal = COMPONENTS["responses"][reference.rpartition("/")[2]]

    schema = refusal["headers"]["Allow"]["schema"]
    # A hook may have fewer methods than its address.
    documented = schema.get("enum") or [schema["const"]]
    assert documented[0] == client.patch(PATHS[path])["Allow"]


def test_the_documented_codes_are_those_of_the_code() -> None:
    documented = COMPONENTS["schemas"]["Problem"]["properties"]["code"]["enum"]
    assert sorted(documented) == sorted(registered_codes())


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_documented_code_has_its_status(name: str) -> None:
    status, codes = PROBLEMS[name]

    usual = set(codes) - WITH_ANOTHER_STATUS.get(status, set())
    assert {meaning(code).status for code in registered_codes() if code in usual} == {status}


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_documented_code_is_explained(name: str) -> None:
    description = COMPONENTS["responses"][name]["description"]

    assert {line.split("`")[1] for line in description.split("\n\n")} == set(PROBLEMS[name][1])


def test_every_code_is_the_response_of_an_operation() -> None:
    assert {code for _, codes in PROBLEMS.values() for code in codes} == set(registered_codes())


@pytest.mark.parametrize("path", PATHS)
def test_responses_are_documented_under_their_status(path: str) -> None:
    stated = [
        (int(status), PROBLEMS[response["$ref"].rpartition("/")[2]][0])
        for method, operation in DOCUMENT["paths"][path].items()
        if method != "parameters"
        for status, response in operation["responses"].items()
        if "$ref" in response and status != "default"
    ]

    assert stated
    assert [status for status, _ in stated] == [status for _, status in stated]


@pytest.mark.parametrize("name", COMPONENTS["responses"])
def test_only_replies_of_finished_runs_may_be_repeated(name: str) -> None:
    """Deliveries whose run failed run again; see hooks.flows.idempotency."""
    headers = COMPONENTS["responses"][name].get("headers", {})
    of_run = "Moonhook-Run-Id" in headers
    is_failure = name in PROBLEMS and PROBLEMS[name][0] >= 500

    assert ("Moonhook-Duplicate-Of" in headers) == (of_run and not is_failure)


def test_every_component_is_used_and_every_reference_resolves() -> None:
    defined = {
        f"#/components/{kind}/{name}"
        for kind, components in COMPONENTS.items()
        if kind != "securitySchemes"
        for name in components
    }

    assert set(references(DOCUMENT)) == defined


def test_the_login_fields_are_those_of_the_serializer() -> None:
    schema = COMPONENTS["schemas"]["OpenSession"]
    fields = OpenSessionSerializer().fields

    assert schema["properties"].keys() == fields.keys()
    assert set(schema["required"]) == {name for name, field in fields.items() if field.required}
    assert schema["properties"]["credential"]["enum"] == Credential.values
