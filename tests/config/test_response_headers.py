"""What every answer says beside its body."""

import json
from typing import Any

import pytest
from django.test import override_settings

from accounts.messages.channels import SendVia
from accounts.models import User
from tests.client import Client
from tests.factories import deliver_pin, make_pin

SEND = "mutation($e: String) { sendPinCode(email: $e, sendVia: Both) }"
CHECK = """mutation($e: String) { checkPinCode(
    email: $e, pin: "000000", device: "8d0f5e4e-6f2b-4c0e-9d8a-0a4f5f1f2a3b") { result token } }"""


def user_graphql(query: str, email: str) -> Any:
    body = json.dumps({"query": query, "variables": {"e": email}})
    return Client().post("/user/graphql", body, content_type="application/json")


@pytest.mark.parametrize("query", [SEND, CHECK])
def test_known_and_unknown_addresses_get_the_same_status_body_and_headers(
    alice: User, query: str
) -> None:
    make_pin(alice)
    deliver_pin("nobody@example.com", SendVia.EMAIL)
    known, unknown = (user_graphql(query, e) for e in (alice.email, "nobody@example.com"))

    assert (known.status_code, known.content) == (unknown.status_code, unknown.content)
    headers = [dict(response.headers) for response in (known, unknown)]
    assert [each.pop("X-Request-Id") for each in headers]
    assert headers[0] == headers[1]
    assert known.cookies == unknown.cookies == {}


@pytest.mark.parametrize("path", ["/session", "/user/graphql", "/nowhere"])
def test_answers_are_protected_from_browsers_guesses(client: Client, db: None, path: str) -> None:
    response = client.get(path)

    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Frame-Options"] == "DENY"
    assert response["Referrer-Policy"] == "same-origin"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"
    assert len(response["X-Request-Id"]) == 32


def test_over_https_browsers_are_told_to_stay_there(client: Client, db: None) -> None:
    with override_settings(SECURE_HSTS_SECONDS=31_536_000):
        secure = Client().get("/healthz", secure=True)

    assert secure["Strict-Transport-Security"] == "max-age=31536000"
    assert "Strict-Transport-Security" not in client.get("/healthz", secure=True)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "a b", ""])
def test_other_hosts_are_not_answered(db: None, host: str) -> None:
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        response = Client(headers={"Host": host}).get("/session", headers={"Host": host})

    assert response.status_code == 400
    assert response.json()["code"] == "invalid-request"
    assert "evil" not in response.content.decode()
