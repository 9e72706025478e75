"""Rotation with an overlap, networks, notices, warnings."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from accounts.flows.api_keys import IssuedApiKey, issue_api_key, revoke_api_key
from accounts.flows.notices import warn_of_expiry
from accounts.models import ApiKey, Organisation, User
from hooks.models import Hook
from tests.client import Client
from tests.factories import (
    admin_graphql,
    api_key_login,
    bearer,
    make_hook,
    make_script,
    open_session,
    post_session,
    work,
)

ROTATE = """mutation($id: ID!, $overlap: Int) { rotateApiKey(id: $id, overlapSeconds: $overlap) {
    apiKey { key previousValidUntil } secret } }"""
ROTATE_HOOK = """mutation($id: ID!, $overlap: Int) {
    rotateCallToken(hook: $id, overlapSeconds: $overlap) { hook { url } callToken } }"""
CREATE = """mutation($networks: [String!]) {
    createApiKey(name: "till", allowedNetworks: $networks) {
        apiKey { key allowedNetworks } secret } }"""


def status_of(issued: IssuedApiKey, secret: str, address: str = "127.0.0.1") -> int:
    client: Any = Client(REMOTE_ADDR=address)
    status: int = post_session(client, api_key_login(issued, password=secret)).status_code
    return status


def test_a_rotated_secret_takes_the_place_of_the_old_one(
    acme_key: IssuedApiKey, acme_token: str
) -> None:
    answer = admin_graphql(ROTATE, acme_token, id=str(acme_key.api_key.pk)).data["rotateApiKey"]

    assert answer["apiKey"]["key"] == acme_key.api_key.key
    assert status_of(acme_key, answer["secret"]) == 201
    assert status_of(acme_key, acme_key.secret) == 401


def test_both_secrets_are_accepted_during_the_overlap_only(
    acme_key: IssuedApiKey, acme_token: str
) -> None:
    answer = admin_graphql(ROTATE, acme_token, id=str(acme_key.api_key.pk), overlap=3600)
    secret = answer.data["rotateApiKey"]["secret"]

    assert (status_of(acme_key, secret), status_of(acme_key, acme_key.secret)) == (201, 201)
    ApiKey.objects.update(previous_valid_until=timezone.now())
    assert (status_of(acme_key, secret), status_of(acme_key, acme_key.secret)) == (201, 401)


@pytest.mark.parametrize("overlap", [-1, 7 * 86_400 + 1])
def test_an_overlap_has_its_bounds(acme_key: IssuedApiKey, acme_token: str, overlap: int) -> None:
    answer = admin_graphql(ROTATE, acme_token, id=str(acme_key.api_key.pk), overlap=overlap)

    assert answer.code == "BAD_USER_INPUT"
    assert answer.errors[0]["extensions"]["field"] == "overlapSeconds"
    assert status_of(acme_key, acme_key.secret) == 201


def test_a_revoked_key_is_not_rotated(acme_key: IssuedApiKey, acme_token: str) -> None:
    other = issue_api_key(acme_key.api_key.organisation, name="other")
    revoke_api_key(other.api_key)

    answer = admin_graphql(ROTATE, acme_token, id=str(other.api_key.pk))
    assert answer.code == "FORBIDDEN"


def test_revoking_ends_the_secret_of_the_overlap_too(
    acme_key: IssuedApiKey, acme_token: str
) -> None:
    admin_graphql(ROTATE, acme_token, id=str(acme_key.api_key.pk), overlap=3600)
    revoke_api_key(ApiKey.objects.get())

    assert status_of(acme_key, acme_key.secret) == 401


def test_a_call_token_rotates_with_an_overlap_too(
    client: Client, acme: Organisation, acme_token: str
) -> None:
    hook, token = make_hook(make_script(acme))
    old = "/hook/" + hook.url_with(token).split("/hook/")[1]
    answer = admin_graphql(ROTATE_HOOK, acme_token, id=str(hook.pk), overlap=60)
    new = "/hook/" + answer.data["rotateCallToken"]["hook"]["url"].split("/hook/")[1]

    assert [client.get(path).status_code for path in (old, new)] == [200, 200]
    Hook.objects.update(previous_valid_until=timezone.now())
    assert [client.get(path).status_code for path in (old, new)] == [404, 200]


def test_a_key_is_accepted_only_in_its_networks(acme: Organisation) -> None:
    issued = issue_api_key(acme, name="till", allowed_networks=["192.0.2.0/24", "2001:db8::/32"])

    assert status_of(issued, issued.secret, "192.0.2.9") == 201
    assert status_of(issued, issued.secret, "2001:db8::9") == 201
    assert status_of(issued, issued.secret, "198.51.100.9") == 401


def test_a_session_is_accepted_only_in_the_networks_of_its_key(
    client: Client, acme_key: IssuedApiKey, acme_token: str
) -> None:
    ApiKey.objects.update(allowed_networks=["192.0.2.0/24"])

    assert client.get("/session", headers=bearer(acme_token)).status_code == 401
    inside: Any = Client(REMOTE_ADDR="192.0.2.9")
    assert inside.get("/session", headers=bearer(acme_token)).status_code == 200


def test_networks_are_set_by_graphql_in_canonical_form(acme_token: str) -> None:
    answer = admin_graphql(CREATE, acme_token, networks=[" 192.0.2.7 ", "2001:DB8::/32"])

    key = answer.data["createApiKey"]["apiKey"]
    assert key["allowedNetworks"] == ["192.0.2.7/32", "2001:db8::/32"]


@pytest.mark.parametrize("network", ["x", "192.0.2.1/24", "192.0.2.0/33", ""])
def test_an_invalid_network_is_refused(acme_token: str, network: str) -> None:
    answer = admin_graphql(CREATE, acme_token, networks=[network])

    assert answer.code == "BAD_USER_INPUT"
    assert answer.errors[0]["extensions"]["field"] == "allowedNetworks"
    assert ApiKey.objects.count() == 1


def test_use_is_noted_with_its_address(acme_key: IssuedApiKey) -> None:
    open_session(api_key_login(acme_key))

    api_key = ApiKey.objects.get()
    assert api_key.last_used_at is not None
    assert api_key.last_used_from == "127.0.0.1"


def test_a_key_unused_for_90_days_is_pointed_out(acme_key: IssuedApiKey, acme_token: str) -> None:
    query = "{ apiKeys { nodes { isUnused } } }"
    used = admin_graphql(query, acme_token).data
    ApiKey.objects.update(last_used_at=timezone.now() - timedelta(days=90))
    unused = admin_graphql(query, acme_token).data

    assert used == {"apiKeys": {"nodes": [{"isUnused": False}]}}
    assert unused == {"apiKeys": {"nodes": [{"isUnused": True}]}}


def test_each_expiry_notice_of_a_key_is_sent_once(
    acme: Organisation, alice: User, bob: User, charlie: User
) -> None:
    issue_api_key(acme, name="till", expires_at=timezone.now() + timedelta(days=29))
    issue_api_key(acme, name="forever")
    told = [warn_of_expiry(), warn_of_expiry()]
    ApiKey.objects.filter(name="till").update(expires_at=timezone.now() + timedelta(hours=20))
    told += [warn_of_expiry(), warn_of_expiry()]

    work()

    assert told == [1, 0, 1, 0]
    assert [message.to for message in mail.outbox] == [[bob.delivery_email]] * 2
    assert "till" in mail.outbox[0].subject


def test_revoked_keys_and_distant_expiries_cause_no_notice(acme: Organisation, bob: User) -> None:
    soon = timezone.now() + timedelta(days=1)
    revoke_api_key(issue_api_key(acme, name="revoked", expires_at=soon).api_key)
    issue_api_key(acme, name="far", expires_at=timezone.now() + timedelta(days=31))

    assert warn_of_expiry() == 0
    work()
    assert mail.outbox == []
