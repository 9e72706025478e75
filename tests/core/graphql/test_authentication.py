"""Authentication of a GraphQL request, the fields that need none, and the guard before it."""

import pytest
from django.test import RequestFactory

from core.graphql.reply import GRAPHQL_RESPONSE, JSON
from core.graphql.view import GraphQLOverHTTPView
from tests.core.graphql.client import answer, codes, post, post_as_alice, post_raw
from tests.core.graphql.schema import schema

ME = "{ me { email } }"
BOTH_TYPES = pytest.mark.parametrize("accept", [GRAPHQL_RESPONSE, JSON])
BOTH_ENDPOINTS = pytest.mark.parametrize("admin", [False, True])


@BOTH_ENDPOINTS
def test_a_session_is_let_in(admin: bool, calls: list[str]) -> None:
    response = post_as_alice(ME, admin=admin)

    assert response.status_code == 200
    assert answer(response) == {"data": {"me": {"email": "alice@acme.example"}}}
    assert calls == ["me"]


@BOTH_ENDPOINTS
def test_resolvers_find_the_session_in_their_context(admin: bool) -> None:
    response = post_as_alice("{ session }", admin=admin)

    assert answer(response) == {"data": {"session": repr("alice's session")}}


@BOTH_TYPES
@BOTH_ENDPOINTS
def test_a_request_without_a_session_is_refused(accept: str, admin: bool, calls: list[str]) -> None:
    response = post(ME, accept=accept, admin=admin)

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="moonhook"'
    assert response["Content-Type"] == f"{accept}; charset=utf-8"
    assert answer(response) == {
        "errors": [
            {
                "message": "No session was presented.",
                "extensions": {"code": "UNAUTHENTICATED"},
            }
        ]
    }
    assert calls == []


@BOTH_TYPES
@BOTH_ENDPOINTS
def test_a_refused_session_differs_from_a_missing_one(
    accept: str, admin: bool, calls: list[str]
) -> None:
    response = post(ME, accept=accept, admin=admin, headers={"Authorization": "Bearer mallory"})

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="moonhook", error="invalid_token"'
    assert answer(response)["errors"][0]["extensions"] == {"code": "UNAUTHENTICATED"}
    assert calls == []


@BOTH_TYPES
@BOTH_ENDPOINTS
def test_a_session_of_the_wrong_kind_is_forbidden(
    accept: str, admin: bool, calls: list[str]
) -> None:
    response = post(ME, accept=accept, admin=admin, headers={"Authorization": "Bearer machine"})

    assert response.status_code == 403
    assert codes(response) == ["FORBIDDEN"]
    assert "data" not in answer(response)
    assert calls == []


@BOTH_TYPES
@BOTH_ENDPOINTS
def test_a_request_is_refused_when_authentication_fails(
    accept: str, admin: bool, calls: list[str]
) -> None:
    response = post(ME, accept=accept, admin=admin, headers={"Authorization": "Bearer broken"})

    assert response.status_code == 500
    assert answer(response) == {
        "errors": [
            {
                "message": "Internal error.",
                "extensions": {"code": "INTERNAL", "requestId": "f00d"},
            }
        ]
    }
    assert calls == []


@pytest.mark.parametrize("body", ["", "{", '{"query": "{"}', '{"query": "{ nope }"}'])
def test_the_admin_endpoint_authenticates_before_it_reads_the_body(body: str) -> None:
    response = post_raw(body, admin=True, content_type="text/plain")

    assert response.status_code == 401
    assert codes(response) == ["UNAUTHENTICATED"]


def test_introspection_of_the_admin_endpoint_needs_a_session(calls: list[str]) -> None:
    response = post("{ __typename }", admin=True)

    assert response.status_code == 401
    assert codes(response) == ["UNAUTHENTICATED"]


@pytest.mark.parametrize(
    "query",
    [
        'mutation { sendPinCode(email: "alice@acme.example") }',
        'mutation { code: sendPinCode(email: "alice@acme.example") }',
        'mutation { ...F } fragment F on Mutation { sendPinCode(email: "a@acme.example") }',
    ],
)
def test_a_pin_is_sent_without_a_session(query: str, calls: list[str]) -> None:
    response = post(query)

    assert response.status_code == 200
    assert calls == ["sendPinCode"]


def test_a_session_presented_along_with_a_login_is_ignored(calls: list[str]) -> None:
    response = post(
        'mutation { checkPinCode(pin: "123456") { result } }',
        headers={"Authorization": "Bearer mallory"},
    )

    assert response.status_code == 200
    assert calls == ["checkPinCode"]


@pytest.mark.parametrize(
    "query",
    [
        "{ __typename me { email } }",
        "{ __typename: me { email } }",
        "{ ... { me { email } } }",
        "{ ... on Query @include(if: true) { me { email } } }",
        "{ ...F } fragment F on Query { ...G } fragment G on Query { me { email } }",
        "{ me @skip(if: true) { email } __typename }",
        'mutation { saveProfile(profile: {name: "alice"}) }',
    ],
)
def test_no_spelling_hides_a_field_from_authentication(query: str, calls: list[str]) -> None:
    response = post(query)

    assert response.status_code == 401
    assert "data" not in answer(response)
    assert calls == []


def test_only_the_chosen_operation_needs_a_session(calls: list[str]) -> None:
    query = "query Mine { me { email } } query Open { __typename }"

    response = post(query, operationName="Open")

    assert answer(response) == {"data": {"__typename": "Query"}}
    assert calls == []


def test_authentication_comes_before_variables(calls: list[str]) -> None:
    query = "query ($text: String!) { echo(text: $text) }"

    response = post(query)

    assert response.status_code == 401
    assert calls == []


@BOTH_TYPES
@BOTH_ENDPOINTS
def test_the_guard_refuses_other_sites(accept: str, admin: bool, calls: list[str]) -> None:
    headers = {"Authorization": "Bearer alice", "Sec-Fetch-Site": "cross-site"}

    response = post(ME, accept=accept, admin=admin, headers=headers)

    assert response.status_code == 403
    assert codes(response) == ["FORBIDDEN"]
    assert calls == []


def test_an_endpoint_without_authentication_is_closed(calls: list[str]) -> None:
    request = RequestFactory().post("/graphql", {"query": ME}, content_type="application/json")

    response = GraphQLOverHTTPView.as_view(schema=schema)(request)

    assert response.status_code == 401
    assert calls == []
