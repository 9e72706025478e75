"""Hostile text in every client input: refused with its own error, never with 500."""

import base64
from typing import Any

import pytest

from accounts.models import Organisation
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import admin_graphql, make_hook, make_script

MOMENTS = [
    "",
    "\0",
    "0000-00-00",
    "2026-02-30",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-01-01T00:00:00+99:99",
    "٢٠٢٦-01-01T00:00:00",
    "9" * 5_000,
]
IDS = ["", "\0", "é", "٠" * 32, "{" * 100, "urn:uuid:" * 1_000, "0" * 32, "9" * 5_000]
NUMBERS = [2**31, 2**63, -(2**63), 10**400, -1, 0.5]
BODIES = [
    "[" * 15_000,
    "[" * 900 + "]" * 900,
    # Parsed from Python 3.12 on, which no longer limits the parser as it limits functions.
    "[" * 7_000 + "]" * 7_000,
    '{"query": "{__typename}", "variables": {"a": ' + "[" * 4_000 + "]" * 4_000 + "}}",
    '{"apiKey": ' + "[" * 4_000 + "]" * 4_000 + "}",
    '{"a":' * 900 + "1" + "}" * 900,
    "9" * 10_000,
    '{"query": ' + "9" * 10_000 + "}",
    '{"query": "' + "{a" * 3_000 + '"}',
    '{"query": "{__typename}", "variables": {"a": ' + "[" * 450 + "]" * 450 + "}}",
    '{"query": "query($a: ID){runs(hook: $a){totalCount}}", "variables": {"a": '
    + "[" * 450
    + "]" * 450
    + "}}",
    '{"query": "{runs(first: ' + "9" * 10_000 + '){totalCount}}"}',
    '{"uid": "\\ud800", "password": "\\u0000", "credential": "ApiKey", "email": "\\ud800"}',
]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "query",
    [
        "query($moment: DateTime) { runs(since: $moment) { totalCount } }",
        "query($moment: DateTime) { runs(until: $moment) { nodes { id } } }",
        'mutation($moment: DateTime) { createApiKey(name: "x", expiresAt: $moment) { secret } }',
    ],
)
def test_a_moment(acme_token: str, query: str, moment: str) -> None:
    assert admin_graphql(query, acme_token, moment=moment).code == "BAD_USER_INPUT"


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize(
    "query",
    [
        "query($id: ID!) { run(id: $id) { id } }",
        "query($id: ID) { runs(script: $id) { totalCount } }",
        "mutation($id: ID!) { endSession(id: $id) }",
        "mutation($id: ID!) { restoreScriptVersion(version: $id) { id } }",
    ],
)
def test_an_id(acme_token: str, query: str, id: str) -> None:
    assert admin_graphql(query, acme_token, id=id).code == "NOT_FOUND"


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_of_rows(acme_token: str, number: Any) -> None:
    query = "query($number: Int) { runs(first: $number) { totalCount } }"

    assert admin_graphql(query, acme_token, number=number).code == "BAD_USER_INPUT"


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_of_seconds(acme: Organisation, acme_token: str, number: Any) -> None:
    hook, _ = make_hook(make_script(acme))
    query = """mutation($id: ID!, $number: Int) {
        rotateCallToken(hook: $id, overlapSeconds: $number) { callToken } }"""
    answer = admin_graphql(query, acme_token, id=str(hook.pk), number=number)

    assert answer.code == "BAD_USER_INPUT"


@pytest.mark.parametrize("path", ["/admin/graphql", "/user/graphql", "/session"])
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_body(client: Client, acme_token: str, path: str, body: str) -> None:
    reply = client.post(
        path, body, content_type="application/json", HTTP_AUTHORIZATION=f"Bearer {acme_token}"
    )

    assert reply.status_code in {200, 400, 401, 403}
    assert b"INTERNAL" not in reply.content


@pytest.mark.parametrize(
    "login",
    [b"", b":", b"\xff\xfe:\0", "٠٠:mhc_".encode(), b"x" * 3_000 + b":x"],
)
def test_a_basic_login(client: Client, acme: Organisation, login: bytes) -> None:
    script = make_script(acme)
    reply = client.post(
        f"/hook/secure/{acme.pk}/{script.pk}",
        b"{}",
        content_type="application/json",
        HTTP_AUTHORIZATION="Basic " + base64.b64encode(login).decode(),
    )

    assert reply.status_code == 401
    assert not Run.objects.exists()
