"""Who has a say over a user: the organisation that made them, even when others have them too."""

from typing import Any

import pytest
from django.test import Client

from accounts.flows.organisations import remove_member
from accounts.flows.users import deactivate_user
from accounts.messages.channels import SendVia
from accounts.models import AuthEvent, Organisation, Role, User
from sessions_api.models import Session
from tests.factories import (
    GraphQLAnswer,
    admin_graphql,
    deliver_pin,
    device_login,
    is_accepted,
    make_device_token,
    make_user,
    open_session,
    post_session,
    user_graphql,
)

USER = """query($id: ID!) { user(id: $id) {
    email name phone createdAt isActive isShared role membership { status } } }"""
UPDATE = """mutation($id: ID!, $name: String, $phone: String, $email: String, $active: Boolean) {
    updateUser(id: $id, name: $name, phone: $phone, email: $email, isActive: $active) {
        name phone isActive isShared } }"""
DEACTIVATE = "mutation($id: ID!) { deactivateUser(id: $id) { isActive } }"
UNLOCK = "mutation($id: ID!) { unlockUser(id: $id) { email } }"
REMOVE = "mutation($id: ID!) { removeMember(user: $id) }"
ADD = "mutation($email: String!) { addMember(email: $email) { id name phone isShared } }"
DEVICES = "query($id: ID!) { devices(user: $id) { nodes { label } } }"
SESSIONS = "query($id: ID!) { sessions(user: $id) { totalCount } }"
END_SESSION = "mutation($id: ID!) { endSession(id: $id) }"
REVOKE_DEVICE = "mutation($id: ID!) { revokeDevice(tokenId: $id) }"
EVENTS = "query($id: ID!) { authEvents(user: $id) { nodes { kind clientAddress } } }"
ACCEPT = "mutation($id: ID!) { acceptInvitation(id: $id) }"


@pytest.fixture
def shared(globex: Organisation, alice: User) -> User:
    """Alice, made by Acme, who accepted to be a member of Globex too."""
    alice.memberships.create(organisation=globex)
    return alice


def row_of(user: User) -> dict[str, Any]:
    return User.objects.values().get(pk=user.pk)


# --- Home -----------------------------------------------------------------------------------------


def test_home_sees_the_profile_of_a_shared_user(shared: User, acme_token: str) -> None:
    seen = admin_graphql(USER, acme_token, id=str(shared.pk)).data["user"]

    assert (seen["name"], seen["phone"], seen["isShared"]) == ("Alice", "+491701234567", True)
    assert seen["createdAt"] is not None


def test_home_renames_deactivates_and_reactivates_a_shared_user(
    shared: User, acme_token: str
) -> None:
    named = admin_graphql(UPDATE, acme_token, id=str(shared.pk), name="Alicia", active=False)
    off = row_of(shared)["is_active"]
    admin_graphql(UPDATE, acme_token, id=str(shared.pk), active=True)

    assert named.data["updateUser"]["name"] == "Alicia"
    assert (off, row_of(shared)["is_active"]) == (False, True)


@pytest.mark.parametrize("change", [{"phone": "+4915112345678"}, {"email": "eve@example.com"}])
def test_home_cannot_change_the_login_of_a_shared_user(
    shared: User, acme_token: str, change: dict[str, str]
) -> None:
    before = row_of(shared)
    answer = admin_graphql(UPDATE, acme_token, id=str(shared.pk), name="Eve", **change)

    assert (answer.code, answer.data) == ("FORBIDDEN", None)
    assert row_of(shared) == before


def test_home_changes_them_again_once_the_other_membership_has_ended(
    globex: Organisation, shared: User, acme_token: str
) -> None:
    remove_member(globex, shared)
    answer = admin_graphql(UPDATE, acme_token, id=str(shared.pk), phone="+4915112345678")

    assert answer.data["updateUser"]["phone"] == "+4915112345678"
    assert answer.data["updateUser"]["isShared"] is False


def test_home_ends_sessions_and_devices_of_a_shared_user(shared: User, acme_token: str) -> None:
    issued = make_device_token(shared)
    session = Session.objects.find_live(open_session(device_login(issued)))
    assert session is not None
    listed = admin_graphql(DEVICES, acme_token, id=str(shared.pk)).data["devices"]["nodes"]
    counted = admin_graphql(SESSIONS, acme_token, id=str(shared.pk)).data["sessions"]["totalCount"]

    ended = admin_graphql(END_SESSION, acme_token, id=str(session.pk))
    revoked = admin_graphql(REVOKE_DEVICE, acme_token, id=str(issued.device_token.pk))

    assert (listed, counted) == ([{"label": "phone"}], 1)
    assert (ended.data, revoked.data) == ({"endSession": True}, {"revokeDevice": True})
    assert not Session.objects.filter(pk=session.pk).exists()
    assert not is_accepted(issued)


def test_home_unlocks_and_deactivates_a_shared_user(shared: User, acme_token: str) -> None:
    unlocked = admin_graphql(UNLOCK, acme_token, id=str(shared.pk))
    deactivated = admin_graphql(DEACTIVATE, acme_token, id=str(shared.pk))

    assert unlocked.data == {"unlockUser": {"email": "alice@example.com"}}
    assert deactivated.data == {"deactivateUser": {"isActive": False}}
    assert not row_of(shared)["is_active"]


def test_home_has_the_whole_audit_of_a_shared_user(
    client: Client, acme: Organisation, shared: User, acme_token: str, globex_token: str
) -> None:
    AuthEvent.objects.all().delete()
    deliver_pin(shared.email, SendVia.EMAIL)
    issued = make_device_token(shared)
    token = open_session(device_login(issued))
    post_session(client, device_login(issued, password=device_login(issued)["password"][:-1]))
    post_session(client, device_login(issued, email="x@example.com"))
    [session] = user_graphql("{ sessions { id } }", token).data["sessions"]
    user_graphql("mutation($id: ID!) { endSession(id: $id) }", token, id=session["id"])
    admin_graphql(UNLOCK, acme_token, id=str(shared.pk))

    at_home = admin_graphql(EVENTS, acme_token, id=str(shared.pk)).data["authEvents"]["nodes"]
    elsewhere = admin_graphql(EVENTS, globex_token, id=str(shared.pk)).data["authEvents"]["nodes"]
    assert [event["kind"] for event in at_home] == [
        "account.unlocked",
        "session.ended",
        "session.refused",
        "session.opened",
        "device.added",
        "pin.sent",
    ]
    assert elsewhere == []


# --- Others ---------------------------------------------------------------------------------------


def test_another_organisation_sees_the_email_and_its_own_role_only(
    acme: Organisation, shared: User, globex_token: str
) -> None:
    deactivate_user(acme, shared)

    assert admin_graphql(USER, globex_token, id=str(shared.pk)).data["user"] == {
        "email": "alice@example.com",
        "name": "",
        "phone": None,
        "createdAt": None,
        "isActive": True,
        "isShared": True,
        "role": "Member",
        "membership": {"status": "Accepted"},
    }


@pytest.mark.parametrize(
    "change",
    [{"phone": "+4915112345678"}, {"email": "eve@example.com"}, {"name": "Eve"}, {"active": False}],
)
def test_another_organisation_changes_nothing_of_a_member(
    shared: User, globex_token: str, change: dict[str, Any]
) -> None:
    before = row_of(shared)
    answers = [
        admin_graphql(UPDATE, globex_token, id=str(shared.pk), **change),
        admin_graphql(DEACTIVATE, globex_token, id=str(shared.pk)),
        admin_graphql(UNLOCK, globex_token, id=str(shared.pk)),
    ]

    assert [(answer.code, answer.data) for answer in answers] == [("FORBIDDEN", None)] * 3
    assert row_of(shared) == before


def test_the_cursor_of_users_does_not_reveal_creation_times(
    shared: User, globex_token: str
) -> None:
    """It holds when the membership began."""
    query = "{ users(first: 1) { nodes { email } pageInfo { endCursor } } }"
    before = admin_graphql(query, globex_token).data["users"]["pageInfo"]["endCursor"]
    User.objects.filter(pk=shared.pk).update(created_at="2001-01-01T00:00:00Z")

    assert admin_graphql(query, globex_token).data["users"]["pageInfo"]["endCursor"] == before


# --- Leaving home ---------------------------------------------------------------------------------


def leave(acme_token: str, user: User) -> GraphQLAnswer:
    return admin_graphql(REMOVE, acme_token, id=str(user.pk))


def test_a_user_who_leaves_home_is_their_own_and_stays_logged_in(
    alice: User, acme_token: str
) -> None:
    token = open_session(device_login(make_device_token(alice)))

    assert leave(acme_token, alice).data == {"removeMember": True}
    assert row_of(alice)["home_id"] is None
    assert user_graphql("{ me { email memberships { role } } }", token).data["me"] == {
        "email": "alice@example.com",
        "memberships": [],
    }


@pytest.mark.parametrize("change", [{"phone": "+4915112345678"}, {"name": "Eve"}])
def test_a_user_who_has_left_home_cannot_be_taken_over(
    acme: Organisation,
    globex: Organisation,
    alice: User,
    acme_token: str,
    globex_token: str,
    change: dict[str, str],
) -> None:
    token = open_session(device_login(make_device_token(alice)))
    leave(acme_token, alice)
    admin_graphql(ADD, globex_token, email=alice.email)
    admin_graphql(ADD, acme_token, email=alice.email)
    invitations = user_graphql("{ invitations { id } }", token).data["invitations"]
    [user_graphql(ACCEPT, token, id=invitation["id"]) for invitation in invitations]
    before = row_of(alice)

    answers = [
        admin_graphql(UPDATE, of, id=str(alice.pk), **change) for of in (acme_token, globex_token)
    ]
    seen = admin_graphql(USER, acme_token, id=str(alice.pk)).data["user"]

    assert alice.memberships.count() == 2
    assert [answer.code for answer in answers] == ["FORBIDDEN", "FORBIDDEN"]
    assert row_of(alice) == before
    assert (seen["name"], seen["phone"], seen["isShared"]) == ("", None, True)


def test_events_about_a_user_without_a_home_are_no_organisations(
    acme_token: str, alice: User
) -> None:
    leave(acme_token, alice)
    make_device_token(alice)

    assert AuthEvent.objects.get(kind="device.added").organisation is None


def test_a_user_who_leaves_another_organisation_keeps_home(
    acme: Organisation, globex: Organisation, shared: User
) -> None:
    remove_member(globex, shared)

    assert row_of(shared)["home_id"] == acme.pk


def test_a_home_without_a_membership_there_counts_for_nothing(
    alice: User, acme: Organisation
) -> None:
    alice.memberships.all().delete()

    assert not alice.belongs_to(acme)
    assert not User.objects.belonging_to(acme.pk).exists()


# --- Superusers -----------------------------------------------------------------------------------


def test_a_superuser_belongs_to_no_organisation(
    acme: Organisation, alice: User, acme_token: str
) -> None:
    User.objects.filter(pk=alice.pk).update(is_superuser=True)
    issued = make_device_token(alice)
    before = row_of(alice)
    answers = [
        admin_graphql(query, acme_token, id=str(alice.pk), **more)
        for query, more in ((UPDATE, {"name": "Eve"}), (DEACTIVATE, {}), (UNLOCK, {}))
    ]
    revoked = admin_graphql(REVOKE_DEVICE, acme_token, id=str(issued.device_token.pk))
    seen = admin_graphql(USER, acme_token, id=str(alice.pk)).data["user"]

    assert [answer.code for answer in [*answers, revoked]] == ["FORBIDDEN"] * 4
    assert row_of(alice) == before
    assert (seen["name"], seen["phone"]) == ("", None)
    assert AuthEvent.objects.get(kind="device.added").organisation is None


@pytest.mark.parametrize("role", Role.values)
def test_an_administrators_membership_elsewhere_gives_no_say_at_home(
    acme: Organisation, globex: Organisation, bob: User, globex_token: str, role: str
) -> None:
    bob.memberships.create(organisation=globex, role=role)
    colleague = make_user(acme, "carol@example.com")

    answer = admin_graphql(USER, globex_token, id=str(colleague.pk))

    assert answer.code == "NOT_FOUND"
