"""HTTP requests and replies of a GraphQL endpoint: methods, media types, bodies, statuses."""

import json
from urllib.parse import urlencode

import pytest
from django.test import RequestFactory

from core.graphql.reply import GRAPHQL_RESPONSE, JSON
from tests.core.graphql.client import answer, codes, post, post_as_alice, post_raw
from tests.core.graphql.endpoints import MAX_BODY_BYTES, user_endpoint

SEND_PIN = 'mutation { sendPinCode(email: "alice@acme.example") }'
BOTH_TYPES = pytest.mark.parametrize("accept", [GRAPHQL_RESPONSE, JSON])


@BOTH_TYPES
def test_an_operation_is_executed(accept: str, calls: list[str]) -> None:
    response = post(SEND_PIN, accept=accept)

    assert response.status_code == 200
    assert answer(response) == {"data": {"sendPinCode": True}}
    assert calls == ["sendPinCode"]


@BOTH_TYPES
def test_a_reply_has_its_media_type_and_is_not_cached(accept: str) -> None:
    response = post("{ __typename }", accept=accept)

    assert response["Content-Type"] == f"{accept}; charset=utf-8"
    assert response["Cache-Control"] == "no-store"
    assert response["Vary"] == "Accept"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert not response.cookies


def test_the_view_is_exempt_from_the_csrf_middleware() -> None:
    assert user_endpoint.csrf_exempt


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_only_post_is_served(method: str, calls: list[str]) -> None:
    request = RequestFactory().generic(
        method, f"/graphql?{urlencode({'query': SEND_PIN})}", headers={"Accept": "text/html"}
    )

    response = user_endpoint(request)

    assert response.status_code == 405
    assert response["Allow"] == "POST"
    assert codes(response) == ["BAD_USER_INPUT"]
    assert calls == []


def test_a_client_that_accepts_no_json_is_refused(calls: list[str]) -> None:
    response = post(SEND_PIN, accept="text/html")

    assert response.status_code == 406
    assert response["Content-Type"] == "application/json; charset=utf-8"
    assert codes(response) == ["BAD_USER_INPUT"]
    assert calls == []


@BOTH_TYPES
@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/graphql",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-16",
        "application/jsonp",
    ],
)
def test_a_body_of_another_type_is_refused(
    accept: str, content_type: str, calls: list[str]
) -> None:
    response = post_raw(json.dumps({"query": SEND_PIN}), content_type=content_type, accept=accept)

    assert response.status_code == 415
    assert answer(response)["errors"][0]["extensions"] == {
        "code": "BAD_USER_INPUT",
        "field": "Content-Type",
    }
    assert calls == []


def test_a_form_is_refused(calls: list[str]) -> None:
    response = post_raw(
        urlencode({"query": SEND_PIN}), content_type="application/x-www-form-urlencoded"
    )

    assert response.status_code == 415
    assert calls == []


def test_a_multipart_form_is_refused(calls: list[str]) -> None:
    request = RequestFactory().post("/graphql", {"query": SEND_PIN})

    response = user_endpoint(request)

    assert response.status_code == 415
    assert codes(response) == ["BAD_USER_INPUT"]
    assert calls == []


@BOTH_TYPES
def test_a_document_in_the_query_string_is_not_read(accept: str, calls: list[str]) -> None:
    response = post_raw("{}", accept=accept, path=f"/graphql?{urlencode({'query': SEND_PIN})}")

    assert response.status_code == 400
    assert answer(response)["errors"][0]["extensions"]["field"] == "query"
    assert calls == []


def test_utf_8_may_be_spelled_out() -> None:
    response = post_raw(
        '{"query": "{ __type(name: \\"Läufer🏃\\") { name } }"}'.encode(),
        content_type='application/json; charset="UTF-8"',
    )

    assert response.status_code == 200
    assert answer(response) == {"data": {"__type": None}}


@BOTH_TYPES
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"query": "{ __typename }"',
        b"{'query': '{ __typename }'}",
        b'{"query": "{ __typename }", "variables": {"x": NaN}}',
        b'{"query": "{ __typename }", "variables": {"x": "\\ud800"}}',
        '{"query": "{ __typename }"}'.encode("utf-16"),
        '{"query": "{ __typename } # ä"}'.encode("latin-1"),
        b"\xef\xbb\xbf" + b'{"query": "{ __typename }"}',
        b"[" * 8_000,
        b'{"query": "{ __typename }", "variables": {"x": ' + b"9" * 5_000 + b"}}",
        b'"{ __typename }"',
        b"null",
        b'[{"query": "{ __typename }"}]',
    ],
)
def test_a_body_that_is_not_one_json_object_is_malformed(accept: str, body: bytes) -> None:
    response = post_raw(body, accept=accept)

    assert response.status_code == 400
    assert answer(response)["errors"][0]["extensions"] == {
        "code": "BAD_USER_INPUT",
        "field": "body",
    }


def test_a_list_of_requests_is_refused_whole(calls: list[str]) -> None:
    response = post_raw(json.dumps([{"query": SEND_PIN}, {"query": SEND_PIN}]))

    assert response.status_code == 400
    assert "data" not in answer(response)
    assert calls == []


@BOTH_TYPES
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("query", None),
        ("query", 1),
        ("query", ["{ __typename }"]),
        ("operationName", 1),
        ("operationName", ["Send"]),
        ("variables", "{}"),
        ("variables", []),
        ("variables", False),
        ("extensions", "{}"),
        ("extensions", []),
        ("extensions", 0),
    ],
)
def test_a_member_of_the_wrong_type_is_malformed(
    accept: str, member: str, value: object, calls: list[str]
) -> None:
    response = post_raw(json.dumps({"query": SEND_PIN, member: value}), accept=accept)

    assert response.status_code == 400
    assert answer(response)["errors"][0]["extensions"]["field"] == member
    assert calls == []


def test_null_members_and_unknown_ones_are_ignored() -> None:
    response = post("{ __typename }", operationName=None, extensions=None, id="x")

    assert answer(response) == {"data": {"__typename": "Query"}}


@BOTH_TYPES
def test_a_body_over_the_limit_is_refused(accept: str, calls: list[str]) -> None:
    body = json.dumps({"query": SEND_PIN})

    response = post_raw(body.ljust(MAX_BODY_BYTES + 1), accept=accept)

    assert response.status_code == 413
    assert codes(response) == ["LIMIT_EXCEEDED"]
    assert calls == []


def test_a_body_at_the_limit_is_taken(calls: list[str]) -> None:
    body = json.dumps({"query": SEND_PIN})

    response = post_raw(body.ljust(MAX_BODY_BYTES))

    assert response.status_code == 200
    assert calls == ["sendPinCode"]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "{",
        "{ nope }",
        "{ me }",
        "{ echo }",
        "{ me { email } } { me { email } }",
        "subscription { me { email } }",
        "subscription { __typename }",
        "fragment F on Query { __typename }",
        "type Query { me: String }",
    ],
)
@pytest.mark.parametrize(("accept", "status"), [(GRAPHQL_RESPONSE, 400), (JSON, 200)])
def test_a_document_that_cannot_be_executed_has_no_data(
    query: str, accept: str, status: int, calls: list[str]
) -> None:
    response = post_as_alice(query, accept=accept)

    assert response.status_code == status
    assert set(codes(response)) == {"GRAPHQL_VALIDATION_FAILED"}
    assert "data" not in answer(response)
    assert calls == []


@pytest.mark.parametrize("name", ["", "Third", None])
@pytest.mark.parametrize(("accept", "status"), [(GRAPHQL_RESPONSE, 400), (JSON, 200)])
def test_an_ambiguous_operation_is_not_executed(
    name: str | None, accept: str, status: int, calls: list[str]
) -> None:
    query = "query First { me { email } } query Second { me { email } }"

    response = post_as_alice(query, operationName=name, accept=accept)

    assert response.status_code == status
    assert answer(response)["errors"][0]["extensions"] == {
        "code": "BAD_USER_INPUT",
        "field": "operationName",
    }
    assert "data" not in answer(response)
    assert calls == []


def test_one_of_several_operations_is_chosen_by_name() -> None:
    query = "query First { __typename } mutation Second { __typename }"

    response = post(query, operationName="Second")

    assert answer(response) == {"data": {"__typename": "Mutation"}}
