"""Accounts at /admin/graphql, and the separation of tenants."""

import base64
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.flows.api_keys import IssuedApiKey
from accounts.models import ApiKey, Membership, Organisation, Role, User
from sessions_api.models import Session
from tests.factories import (
    admin_graphql,
    device_login,
    field_of,
    is_accepted,
    make_device_token,
    open_session,
)

CREATE_USER = """mutation($email: String!, $name: String, $phone: String, $role: Role) {
    createUser(email: $email, name: $name, phone: $phone, role: $role) {
        id email name phone isActive role isShared } }"""
UPDATE_USER = """mutation($id: ID!, $name: String, $phone: String, $email: String, $active: Boolean,
        $role: Role) {
    updateUser(id: $id, name: $name, phone: $phone, email: $email, isActive: $active, role: $role) {
        email name phone isActive role } }"""
DEACTIVATE = "mutation($id: ID!) { deactivateUser(id: $id) { isActive } }"
ADD_MEMBER = """mutation($email: String!, $role: Role) {
    addMember(email: $email, role: $role) { id email name phone role isShared } }"""
REMOVE_MEMBER = "mutation($id: ID!) { removeMember(user: $id) }"
CREATE_KEY = """mutation($name: String!, $expiresAt: DateTime) {
    createApiKey(name: $name, expiresAt: $expiresAt) { apiKey { id key name } secret } }"""
REVOKE_KEY = "mutation($id: ID!) { revokeApiKey(id: $id) { revokedAt } }"
END_SESSION = "mutation($id: ID!) { endSession(id: $id) }"
REVOKE_DEVICE = "mutation($id: ID!) { revokeDevice(tokenId: $id) }"


@pytest.fixture
def shared(acme: Organisation, charlie: User) -> User:
    """Charlie of Globex, a member of Acme too."""
    Membership.objects.create(organisation=acme, user=charlie)
    return charlie


def test_the_organisation_is_that_of_the_key(acme: Organisation, acme_token: str) -> None:
    answer = admin_graphql("{ organisation { id name isActive } }", acme_token)

    assert answer.data["organisation"] == {"id": str(acme.pk), "name": "Acme", "isActive": True}


def test_without_a_session_nothing_is_even_parsed(db: None) -> None:
    answer = admin_graphql("not graphql at all")

    assert (answer.status, answer.code) == (401, "UNAUTHENTICATED")


def test_a_device_session_is_forbidden(alice: User) -> None:
    token = open_session(device_login(make_device_token(alice)))
    answer = admin_graphql("{ organisation { id } }", token)

    assert (answer.status, answer.code) == (403, "FORBIDDEN")


def test_a_user_is_created_as_a_member(acme: Organisation, acme_token: str) -> None:
    answer = admin_graphql(
        CREATE_USER, acme_token, email=" Dora@Example.com", name="Dora", phone="+49 170 123-4567"
    )

    dora = User.objects.get(email="dora@example.com")
    assert answer.data["createUser"] == {
        "id": str(dora.pk),
        "email": "dora@example.com",
        "name": "Dora",
        "phone": "+491701234567",
        "isActive": True,
        "role": "Member",
        "isShared": False,
    }
    assert dora.memberships.get().organisation == acme
    assert not dora.has_usable_password()


def test_a_user_may_be_created_as_an_administrator(acme_token: str) -> None:
    answer = admin_graphql(CREATE_USER, acme_token, email="d@example.com", role="Administrator")

    assert answer.data["createUser"]["role"] == "Administrator"
    assert Membership.objects.get().role == Role.ADMINISTRATOR


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({"email": "not an address"}, "email"),
        ({"email": "d@example.com", "phone": "12345"}, "phone"),
        ({"email": "d@example.com", "name": "x" * 201}, "name"),
        ({"email": "d@example.com", "name": "a\0b"}, "name"),
        ({"email": "alice@example.com"}, "email"),
    ],
)
def test_a_bad_user_is_not_created(
    alice: User, acme_token: str, variables: dict[str, str], field: str
) -> None:
    answer = admin_graphql(CREATE_USER, acme_token, **variables)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)
    assert User.objects.count() == 1


def test_a_known_address_of_another_organisation_is_forbidden(
    charlie: User, acme_token: str
) -> None:
    answer = admin_graphql(
        CREATE_USER, acme_token, email="CHARLIE@example.org", phone="+4917000000"
    )

    assert answer.code == "FORBIDDEN"
    assert charlie.memberships.count() == 1


def test_a_user_is_changed(alice: User, acme_token: str) -> None:
    answer = admin_graphql(
        UPDATE_USER, acme_token, id=str(alice.pk), name="Alicia", phone="", role="Administrator"
    )

    assert answer.data["updateUser"] == {
        "email": "alice@example.com",
        "name": "Alicia",
        "phone": None,
        "isActive": True,
        "role": "Administrator",
    }


def test_a_bad_change_changes_nothing(alice: User, acme_token: str) -> None:
    answer = admin_graphql(
        UPDATE_USER, acme_token, id=str(alice.pk), name="Alicia", phone="x", role="Administrator"
    )

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "phone")
    alice.refresh_from_db()
    assert (alice.name, alice.memberships.get().role) == ("Alice", Role.MEMBER)


@pytest.mark.parametrize(
    "change",
    [{"phone": "+4915112345678"}, {"email": "eve@example.com"}, {"name": "Eve"}, {"active": False}],
)
def test_no_tenant_changes_the_profile_of_a_shared_user(
    shared: User, acme_token: str, change: dict[str, Any]
) -> None:
    before = User.objects.values().get(pk=shared.pk)
    answer = admin_graphql(UPDATE_USER, acme_token, id=str(shared.pk), **change)

    assert answer.code == "FORBIDDEN"
    assert User.objects.values().get(pk=shared.pk) == before


def test_the_role_of_a_shared_user_is_each_organisations_own(
    acme: Organisation, shared: User, acme_token: str
) -> None:
    answer = admin_graphql(UPDATE_USER, acme_token, id=str(shared.pk), role="Administrator")

    assert answer.data["updateUser"]["role"] == "Administrator"
    roles = dict(shared.memberships.values_list("organisation__name", "role"))
    assert roles == {"Acme": "administrator", "Globex": "member"}


def test_a_superuser_belongs_to_no_tenant(alice: User, acme_token: str) -> None:
    User.objects.update(is_superuser=True)

    answer = admin_graphql(UPDATE_USER, acme_token, id=str(alice.pk), phone="+4915112345678")
    assert answer.code == "FORBIDDEN"


def test_a_deactivated_user_is_logged_out_at_once(alice: User, acme_token: str) -> None:
    token = open_session(device_login(make_device_token(alice)))
    answer = admin_graphql(DEACTIVATE, acme_token, id=str(alice.pk))

    assert answer.data == {"deactivateUser": {"isActive": False}}
    assert Session.objects.find_live(token) is None


def test_a_shared_user_is_not_deactivated(shared: User, acme_token: str) -> None:
    token = open_session(device_login(make_device_token(shared)))

    assert admin_graphql(DEACTIVATE, acme_token, id=str(shared.pk)).code == "FORBIDDEN"
    assert Session.objects.find_live(token) is not None


@pytest.mark.parametrize(
    "query",
    [
        "mutation($t: String!) { addMember(email: $t) { id } }",
        "mutation($t: String!) { createUser(email: $t) { id } }",
        'mutation($t: String!) { setSecret(name: $t, value: "x") { id } }',
        "mutation($t: String!) { deleteSecret(name: $t) }",
        "query($t: String) { users(email: $t) { totalCount } }",
        "query($t: String) { scripts(name: $t) { totalCount } }",
        "query($t: String) { authEvents(kind: $t) { totalCount } }",
        "query($t: String) { apiKeys(after: $t) { totalCount } }",
    ],
)
def test_nul_in_a_text_causes_no_internal_error(acme_token: str, query: str) -> None:
    answer = admin_graphql(query, acme_token, t="a\0b@example.com")

    assert answer.code in {None, "BAD_USER_INPUT", "NOT_FOUND"}


@pytest.mark.parametrize(
    "key",
    [
        [None, None],
        ["2026-01-01T00:00:00+00:00", None],
        ["0001-01-01T00:00:00+14:00", str(uuid.uuid4())],
        ["9999-12-31T23:59:59-14:00", str(uuid.uuid4())],
        ["2026-01-01T00:00:00", str(uuid.uuid4()), "x"],
        {"a": 1},
        5,
    ],
)
def test_a_forged_cursor_is_bad_input(acme_token: str, key: Any) -> None:
    cursor = base64.b64encode(json.dumps(key).encode()).decode()
    query = "query($after: String) { apiKeys(after: $after) { nodes { id } } }"

    assert admin_graphql(query, acme_token, after=cursor).code == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-12-31T00:00:00Z"]
)
def test_a_time_beyond_reason_is_bad_input(acme_token: str, moment: str) -> None:
    answer = admin_graphql(CREATE_KEY, acme_token, name="x", expiresAt=moment)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "expiresAt")


def test_a_time_without_an_offset_is_utc(acme_token: str) -> None:
    admin_graphql(CREATE_KEY, acme_token, name="x", expiresAt="2099-01-01T00:00:00")

    assert ApiKey.objects.get(name="x").expires_at == datetime(2099, 1, 1, tzinfo=UTC)


def test_an_unknown_address_cannot_be_added(acme_token: str) -> None:
    assert admin_graphql(ADD_MEMBER, acme_token, email="nobody@example.com").code == "NOT_FOUND"
    assert Membership.objects.count() == 0


def test_a_removed_member_is_seen_no_more(alice: User, acme_token: str) -> None:
    assert admin_graphql(REMOVE_MEMBER, acme_token, id=str(alice.pk)).data == {"removeMember": True}

    assert admin_graphql(REMOVE_MEMBER, acme_token, id=str(alice.pk)).code == "NOT_FOUND"
    assert User.objects.filter(pk=alice.pk).exists()


def test_a_created_key_opens_a_session_and_its_secret_is_shown_once(acme_token: str) -> None:
    issued = admin_graphql(CREATE_KEY, acme_token, name="till").data["createApiKey"]
    key = ApiKey.objects.get(pk=issued["apiKey"]["id"])

    assert issued["apiKey"]["key"] == key.key
    token = open_session(
        {"uid": key.key, "password": issued["secret"], "credential": "ApiKey", "email": ""}
    )
    listed = str(admin_graphql("{ apiKeys { nodes { id key name } } }", token).data)
    assert issued["secret"] not in listed
    assert key.key in listed


def test_a_key_that_has_expired_already_is_not_created(acme_token: str) -> None:
    past = (timezone.now() - timedelta(seconds=1)).isoformat()
    answer = admin_graphql(CREATE_KEY, acme_token, name="till", expiresAt=past)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "expiresAt")
    assert ApiKey.objects.count() == 1


def test_a_key_needs_a_name(acme_token: str) -> None:
    answer = admin_graphql(CREATE_KEY, acme_token, name="  ")

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "name")
    assert ApiKey.objects.count() == 1


def test_a_key_may_revoke_itself(acme_key: IssuedApiKey, acme_token: str) -> None:
    answer = admin_graphql(REVOKE_KEY, acme_token, id=str(acme_key.api_key.pk))

    assert answer.data["revokeApiKey"]["revokedAt"]
    assert admin_graphql("{ organisation { id } }", acme_token).code == "UNAUTHENTICATED"


def test_sessions_of_keys_and_own_users_are_listed_and_ended(alice: User, acme_token: str) -> None:
    token = open_session(device_login(make_device_token(alice)))
    query = "{ sessions { nodes { id credential isCurrent device { label user { email } } } } }"
    nodes = admin_graphql(query, acme_token).data["sessions"]["nodes"]

    [device] = [node for node in nodes if node["credential"] == "Token"]
    assert len(nodes) == 2
    assert device["device"] == {"label": "phone", "user": {"email": "alice@example.com"}}
    assert admin_graphql(END_SESSION, acme_token, id=device["id"]).data == {"endSession": True}
    assert Session.objects.find_live(token) is None


def test_devices_are_listed_and_revoked(alice: User, bob: User, acme_token: str) -> None:
    issued = make_device_token(alice)
    make_device_token(bob)
    query = "query($u: ID) { devices(user: $u) { nodes { tokenId label } totalCount } }"

    assert admin_graphql(query, acme_token).data["devices"]["totalCount"] == 2
    devices = admin_graphql(query, acme_token, u=str(alice.pk)).data["devices"]["nodes"]
    assert devices == [{"tokenId": str(issued.device_token.pk), "label": "phone"}]
    answer = admin_graphql(REVOKE_DEVICE, acme_token, id=devices[0]["tokenId"])
    assert answer.data == {"revokeDevice": True}
    assert not is_accepted(issued)


def test_devices_and_sessions_of_a_shared_user_are_neither_shown_nor_ended(
    shared: User, acme_token: str
) -> None:
    issued = make_device_token(shared)
    token = open_session(device_login(issued))
    session = Session.objects.find_live(token)
    assert session is not None

    listed = admin_graphql("{ devices { totalCount } sessions { totalCount } }", acme_token).data
    assert listed == {"devices": {"totalCount": 0}, "sessions": {"totalCount": 1}}
    assert admin_graphql(END_SESSION, acme_token, id=str(session.pk)).code == "FORBIDDEN"
    revoked = admin_graphql(REVOKE_DEVICE, acme_token, id=str(issued.device_token.pk))
    assert revoked.code == "FORBIDDEN"
    assert Session.objects.find_live(token) is not None


@pytest.mark.parametrize(
    "query",
    [
        "query($id: ID!) { user(id: $id) { email } }",
        "query($id: ID!) { devices(user: $id) { totalCount } }",
        "query($id: ID!) { sessions(user: $id) { totalCount } }",
        UPDATE_USER,
        DEACTIVATE,
        REMOVE_MEMBER,
    ],
)
def test_another_organisations_user_is_not_found(
    charlie: User, acme_token: str, query: str
) -> None:
    before = User.objects.values().get(pk=charlie.pk)
    answers = [
        admin_graphql(query, acme_token, id=theirs)
        for theirs in (str(charlie.pk), str(uuid.uuid4()), "x")
    ]

    assert [answer.code for answer in answers] == ["NOT_FOUND"] * 3
    assert User.objects.values().get(pk=charlie.pk) == before
    assert charlie.memberships.count() == 1


@pytest.mark.parametrize("mutation", [REVOKE_KEY, END_SESSION, REVOKE_DEVICE])
def test_another_organisations_key_session_or_device_is_not_found(
    charlie: User, globex_token: str, acme_token: str, mutation: str
) -> None:
    issued = make_device_token(charlie)
    token = open_session(device_login(issued))
    device_session = Session.objects.find_live(token)
    globex_session = Session.objects.find_live(globex_token)
    assert device_session is not None
    assert globex_session is not None
    assert globex_session.api_key is not None
    theirs = [globex_session.api_key, globex_session, device_session, issued.device_token]
    answers = [admin_graphql(mutation, acme_token, id=str(row.pk)) for row in theirs]

    assert [answer.code for answer in answers] == ["NOT_FOUND"] * 4
    assert Session.objects.find_live(globex_token) is not None
    assert Session.objects.find_live(token) is not None


def test_lists_hold_only_the_own_organisations_rows(
    alice: User, charlie: User, globex_token: str, acme_token: str
) -> None:
    make_device_token(charlie)
    data = admin_graphql(
        """{ users { nodes { email } } apiKeys { totalCount } devices { totalCount }
             sessions { nodes { isCurrent } } }""",
        acme_token,
    ).data

    assert data == {
        "users": {"nodes": [{"email": "alice@example.com"}]},
        "apiKeys": {"totalCount": 1},
        "devices": {"totalCount": 0},
        "sessions": {"nodes": [{"isCurrent": True}]},
    }


def test_pages_follow_one_another_without_gap_or_overlap(
    acme_key: IssuedApiKey, acme_token: str
) -> None:
    names = [f"key {number}" for number in range(5)]
    [admin_graphql(CREATE_KEY, acme_token, name=name) for name in names]
    query = """query($after: String) { apiKeys(first: 2, after: $after) {
        nodes { name } pageInfo { hasNextPage endCursor } totalCount } }"""
    seen: list[str] = []
    after, pages = None, []
    while not pages or pages[-1]["pageInfo"]["hasNextPage"]:
        pages.append(admin_graphql(query, acme_token, after=after).data["apiKeys"])
        after = pages[-1]["pageInfo"]["endCursor"]
        seen += [node["name"] for node in pages[-1]["nodes"]]

    assert seen == [*reversed(names), "warehouse"]
    assert {page["totalCount"] for page in pages} == {6}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ("first: 0", "first"),
        ("first: 201", "first"),
        ("first: -1", "first"),
        ('after: "x"', "after"),
        ('after: "WyJ4Il0="', "after"),
        ('after: "é"', "after"),
    ],
)
def test_a_bad_page_names_the_argument(acme_token: str, arguments: str, field: str) -> None:
    answer = admin_graphql(f"{{ apiKeys({arguments}) {{ totalCount }} }}", acme_token)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)


def test_a_user_is_found_by_email_in_any_spelling(alice: User, bob: User, acme_token: str) -> None:
    answer = admin_graphql('{ users(email: "ALICE@example.com") { nodes { email } } }', acme_token)

    assert answer.data["users"]["nodes"] == [{"email": "alice@example.com"}]


def test_no_digest_can_be_asked_for(acme_token: str) -> None:
    answer = admin_graphql("{ apiKeys { nodes { digest } } }", acme_token)

    assert answer.code == "GRAPHQL_VALIDATION_FAILED"
