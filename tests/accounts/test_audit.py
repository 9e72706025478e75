"""Every use of a credential is recorded, without secrets."""

import uuid
from typing import Any

import pytest
from django.test import Client

from accounts.audit import record
from accounts.flows.api_keys import IssuedApiKey, revoke_api_key
from accounts.messages.channels import SendVia
from accounts.models import ApiKey, AuthEvent, AuthEventKind, Organisation, User
from accounts.models.auth_event import AppendOnlyError
from core.http.origin import Origin
from tests.factories import (
    admin_graphql,
    api_key_login,
    bearer,
    deliver_pin,
    device_login,
    make_device_token,
    make_pin,
    post_session,
    user_graphql,
)

EVENTS = "{ authEvents { nodes { kind reason email credential clientAddress userAgent } } }"
CHECK = """mutation($email: String!, $pin: String!, $device: String!) {
    checkPinCode(email: $email, pin: $pin, device: $device) { result } }"""


def kinds() -> list[str]:
    return list(AuthEvent.objects.order_by("id").values_list("kind", flat=True))


def reasons() -> list[str]:
    return list(AuthEvent.objects.order_by("id").values_list("reason", flat=True))


def test_a_session_is_on_record_from_opening_to_end(acme_key: IssuedApiKey) -> None:
    client = Client(headers={"User-Agent": "till/1.0"})
    response = post_session(client, api_key_login(acme_key))
    client.delete("/session", headers=bearer(response.json()["token"]))

    assert kinds() == ["api-key.issued", "session.opened", "session.ended"]
    opened = AuthEvent.objects.get(kind="session.opened")
    assert opened.organisation == acme_key.api_key.organisation
    assert opened.credential == acme_key.api_key.key
    assert (opened.client_address, opened.user_agent) == ("127.0.0.1", "till/1.0")
    assert opened.request_id == response["X-Request-Id"]


def test_why_a_login_was_refused_is_on_record(client: Client, acme_key: IssuedApiKey) -> None:
    AuthEvent.objects.all().delete()
    wrong = api_key_login(acme_key)["password"][::-1]
    post_session(client, api_key_login(acme_key, password=wrong))
    post_session(client, api_key_login(acme_key, uid="mhk_000000000000"))
    ApiKey.objects.update(allowed_networks=["192.0.2.0/24"])
    post_session(client, api_key_login(acme_key))
    revoke_api_key(acme_key.api_key)
    post_session(client, api_key_login(acme_key))

    assert reasons() == ["malformed-secret", "unknown-key", "address-not-allowed", "", "revoked"]


def test_why_a_pin_was_refused_is_on_record(alice: User) -> None:
    pin = make_pin(alice)
    wrong = f"{(int(pin) + 1) % 10**6:06d}"
    device = str(uuid.uuid4())
    for attempt in ("x", *[wrong] * 5, pin):
        user_graphql(CHECK, None, email=alice.email, pin=attempt, device=device)

    assert reasons() == ["malformed", *["wrong-or-expired"] * 5, "no-open-challenge"]
    assert {event.user for event in AuthEvent.objects.all()} == {alice}


def test_a_code_is_on_record_with_its_channel_and_a_new_device_with_its_id(alice: User) -> None:
    deliver_pin(alice.email, SendVia.EMAIL)
    issued = make_device_token(alice)

    assert kinds() == ["pin.sent", "device.added"]
    assert AuthEvent.objects.get(kind="pin.sent").reason == "email"
    assert AuthEvent.objects.get(kind="device.added").credential == str(issued.device_token.pk)


def test_changes_of_users_and_secrets_are_recorded(acme_token: str, charlie: User) -> None:
    AuthEvent.objects.all().delete()
    create = 'mutation { createUser(email: "dora@example.com") { id } }'
    dora = admin_graphql(create, acme_token).data["createUser"]["id"]
    for mutation in (
        f'mutation {{ updateUser(id: "{dora}", phone: "+491701234567", role: Member) {{ id }} }}',
        'mutation { addMember(email: "charlie@example.org", role: Administrator) { id } }',
        f'mutation {{ removeMember(user: "{charlie.pk}") }}',
        f'mutation {{ deactivateUser(id: "{dora}") {{ id }} }}',
        'mutation { setSecret(name: "KEY", value: "hidden value") { id } }',
        'mutation { deleteSecret(name: "KEY") }',
    ):
        assert admin_graphql(mutation, acme_token).errors == []

    told = [(event.kind, event.reason) for event in AuthEvent.objects.order_by("id")]
    assert told == [
        ("user.created", ""),
        ("user.changed", "phone"),
        ("member.invited", "administrator"),
        ("invitation.withdrawn", "administrator"),
        ("user.deactivated", ""),
        ("secret.set", ""),
        ("secret.deleted", ""),
    ]
    assert "hidden value" not in str(list(AuthEvent.objects.values()))


def test_an_organisation_sees_its_own_events_only(
    acme_token: str, globex_token: str, alice: User
) -> None:
    make_device_token(alice)
    nodes = admin_graphql(EVENTS, acme_token).data["authEvents"]["nodes"]

    assert [node["kind"] for node in nodes] == ["device.added", "session.opened", "api-key.issued"]
    assert nodes[0]["email"] == "alice@example.com"


def test_events_are_filtered(acme_token: str, alice: User) -> None:
    make_device_token(alice)
    query = "query($k: String, $u: ID) { authEvents(kind: $k, user: $u) { totalCount } }"

    by_kind = admin_graphql(query, acme_token, k="session.opened").data
    by_user = admin_graphql(query, acme_token, u=str(alice.pk)).data
    assert by_kind == by_user == {"authEvents": {"totalCount": 1}}


def test_events_are_never_changed(acme: Organisation) -> None:
    record(AuthEventKind.API_KEY_ISSUED, Origin(), organisation=acme)
    event = AuthEvent.objects.get()

    with pytest.raises(AppendOnlyError):
        event.save()
    with pytest.raises(AppendOnlyError):
        event.delete()
    assert AuthEvent.objects.count() == 1


def test_odd_bytes_in_a_header_do_no_harm(client: Client, acme_key: IssuedApiKey) -> None:
    response = post_session(client, api_key_login(acme_key), **{"User-Agent": "a\x00b\xff" * 200})

    assert response.status_code == 201
    assert len(AuthEvent.objects.get(kind="session.opened").user_agent) <= 300


def test_no_secret_is_kept_readable(acme_key: IssuedApiKey, alice: User, client: Client) -> None:
    issued = make_device_token(alice)
    answers: list[Any] = [
        post_session(client, api_key_login(acme_key)).json(),
        post_session(client, device_login(issued)).json(),
        post_session(client, api_key_login(acme_key, password="mhs_mistyped")).json(),
    ]
    kept = str(list(AuthEvent.objects.values()))

    secrets = [acme_key.secret, issued.token, answers[0]["token"], answers[1]["token"]]
    assert [secret for secret in [*secrets, "mhs_mistyped"] if secret in kept] == []
