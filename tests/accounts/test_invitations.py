"""Invitations have no effect before the user accepts."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core import mail
from django.utils import timezone

from accounts.flows.organisations import add_member
from accounts.flows.users import change_profile
from accounts.models import AuthEvent, Invitation, Membership, Organisation, Role, User
from core.plain_text import name_for_mail
from core.upkeep import do_upkeep
from jobs.models import Message
from sessions_api.models import Session
from tests.factories import (
    admin_graphql,
    api_key_login,
    device_login,
    make_api_key,
    make_device_token,
    make_organisation,
    make_user,
    open_session,
    user_graphql,
    work,
)

ADD = """mutation($email: String!, $role: Role) { addMember(email: $email, role: $role) {
    id email name phone createdAt isActive role isShared
    membership { status role expiresAt organisation { name } } } }"""
USERS = """query($email: String, $status: MembershipStatus) {
    users(email: $email, status: $status) {
    totalCount nodes { id email name membership { status } } } }"""
USER = "query($id: ID!) { user(id: $id) { email name phone isActive createdAt } }"
REMOVE = "mutation($id: ID!) { removeMember(user: $id) }"
UPDATE = """mutation($id: ID!, $phone: String, $role: Role) {
    updateUser(id: $id, phone: $phone, role: $role) { phone } }"""
INVITATIONS = "{ invitations { id role createdAt expiresAt organisation { id name } } }"
ME = "{ me { memberships { role status expiresAt organisation { name } } } }"
ACCEPT = "mutation($id: ID!) { acceptInvitation(id: $id) }"
DECLINE = "mutation($id: ID!) { declineInvitation(id: $id) }"


@pytest.fixture
def charlie_token(charlie: User) -> str:
    """Of a session on charlie's phone."""
    return open_session(device_login(make_device_token(charlie)))


@pytest.fixture
def invitation(acme: Organisation, charlie: User) -> Invitation:
    """Acme invites charlie, of Globex."""
    invited = add_member(acme, email=charlie.email)
    assert isinstance(invited, Invitation)
    return invited


def expire(invitation: Invitation) -> None:
    Invitation.objects.filter(pk=invitation.pk).update(expires_at=timezone.now())


def users(token: str, **filters: Any) -> list[tuple[str, str]]:
    """Address and status of each user that the organisation lists."""
    listed = admin_graphql(USERS, token, **filters).data["users"]
    assert listed["totalCount"] == len(listed["nodes"])
    return [(node["email"], node["membership"]["status"]) for node in listed["nodes"]]


# --- Inviting -------------------------------------------------------------------------------------


def test_a_user_of_another_home_is_invited_and_only_the_email_is_shown(
    charlie: User, acme_token: str
) -> None:
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    added = admin_graphql(ADD, acme_token, email=" Charlie@Example.org").data["addMember"]

    expires_at = added["membership"].pop("expiresAt")
    assert added == {
        "id": str(charlie.pk),
        "email": "charlie@example.org",
        "name": "",
        "phone": None,
        "createdAt": None,
        "isActive": True,
        "role": "Member",
        "isShared": True,
        "membership": {
            "status": "Invited",
            "role": "Member",
            "organisation": {"name": "Acme"},
        },
    }
    assert expires_at.startswith(f"{timezone.now() + settings.INVITATION_LIFETIME:%Y-%m-%d}")
    assert charlie.memberships.count() == 1


def test_a_member_gets_the_role_and_no_invitation(
    acme: Organisation, alice: User, acme_token: str
) -> None:
    added = admin_graphql(ADD, acme_token, email=alice.email, role="Administrator")

    assert added.data["addMember"]["membership"]["status"] == "Accepted"
    assert acme.memberships.get().role == Role.ADMINISTRATOR
    assert Invitation.objects.count() == 0


def test_a_second_invitation_changes_the_role_and_sends_no_second_mail(
    charlie: User, acme_token: str
) -> None:
    admin_graphql(ADD, acme_token, email=charlie.email)
    first = Invitation.objects.get()
    admin_graphql(ADD, acme_token, email=charlie.email, role="Administrator")
    work()

    second = Invitation.objects.get()
    assert (second.pk, second.role) == (first.pk, Role.ADMINISTRATOR)
    assert second.expires_at == first.expires_at
    assert len(mail.outbox) == 1


def test_an_unknown_address_and_a_superusers_are_refused_alike(db: None, acme_token: str) -> None:
    User.objects.create_superuser("root@example.com", "a password of root")

    unknown = admin_graphql(ADD, acme_token, email="nobody@example.com")
    superuser = admin_graphql(ADD, acme_token, email="root@example.com")

    assert unknown.code == superuser.code == "NOT_FOUND"
    assert unknown.errors[0]["message"] == superuser.errors[0]["message"]
    assert (Invitation.objects.count(), Membership.objects.count()) == (0, 0)
    assert Message.objects.count() == 0


def test_an_organisation_invites_20_an_hour(acme: Organisation, globex: Organisation) -> None:
    token = open_session(api_key_login(make_api_key(acme)))
    for number in range(21):
        make_user(globex, f"user{number}@example.org")
    answers = [admin_graphql(ADD, token, email=f"user{n}@example.org") for n in range(21)]

    assert [answer.code for answer in answers] == [None] * 20 + ["RATE_LIMITED"]
    assert answers[20].errors[0]["extensions"]["retryAfter"] > 0
    assert Invitation.objects.count() == 20


def test_an_address_is_invited_10_times_a_day_by_all_organisations_together(charlie: User) -> None:
    tokens = [
        open_session(api_key_login(make_api_key(make_organisation(f"Organisation {number}"))))
        for number in range(11)
    ]
    answers = [admin_graphql(ADD, token, email=charlie.email) for token in tokens]
    work()

    assert [answer.code for answer in answers] == [None] * 10 + ["RATE_LIMITED"]
    assert len(mail.outbox) == 10


# --- The mail -------------------------------------------------------------------------------------


def test_an_invited_user_gets_a_mail(invitation: Invitation, charlie: User) -> None:
    work()

    [message] = mail.outbox
    assert message.to == ["charlie@example.org"]
    assert "“Acme” invites you" in message.body
    assert f"{invitation.expires_at:%Y-%m-%d}" in message.body
    arguments = Message.objects.values_list("arguments", flat=True).get()
    assert "charlie" not in str(arguments)
    assert str(invitation.pk) in str(arguments)


def test_no_mail_is_sent_for_an_ended_invitation(
    invitation: Invitation, acme_token: str, charlie: User
) -> None:
    admin_graphql(REMOVE, acme_token, id=str(charlie.pk))
    work()

    assert mail.outbox == []


def test_no_mail_is_sent_for_an_inactive_organisation(
    invitation: Invitation, acme: Organisation
) -> None:
    acme.is_active = False
    acme.save()
    work()

    assert mail.outbox == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Acme", "Acme"),
        ("Müller & Söhne, Inc.", "Müller & Söhne, Inc."),
        ("Acme\r\nBcc: eve@example.com", "Acme Bcc eve example com"),
        ("<b>Acme</b> [x](https://evil.example/a)", "b Acme b x (https evil example a)"),
        ("evil.example", "evil example"),
        ("\u202eemca\u200b", "emca"),
        ("x" * 200, "x" * 80 + "…"),
    ],
)
def test_an_organisations_name_is_plain_in_a_mail(name: str, shown: str) -> None:
    assert name_for_mail(name) == shown


# --- Nothing is given or taken --------------------------------------------------------------------


def test_an_invitation_takes_nothing_from_home(
    invitation: Invitation, charlie: User, globex_token: str
) -> None:
    phone = admin_graphql(UPDATE, globex_token, id=str(charlie.pk), phone="+15550100111")
    query = "query($id: ID!) { user(id: $id) { name isShared } }"

    assert phone.data == {"updateUser": {"phone": "+15550100111"}}
    assert admin_graphql(query, globex_token, id=str(charlie.pk)).data["user"] == {
        "name": "Charlie",
        "isShared": False,
    }


@pytest.mark.parametrize(
    "query",
    [
        UPDATE,
        "mutation($id: ID!) { deactivateUser(id: $id) { id } }",
        "mutation($id: ID!) { unlockUser(id: $id) { id } }",
        "query($id: ID!) { devices(user: $id) { totalCount } }",
        "query($id: ID!) { sessions(user: $id) { totalCount } }",
        "query($id: ID!) { authEvents(user: $id) { totalCount } }",
    ],
)
def test_an_invitation_gives_the_organisation_nothing_to_ask_by(
    invitation: Invitation, charlie: User, charlie_token: str, acme_token: str, query: str
) -> None:
    before = User.objects.values().get(pk=charlie.pk)
    answer = admin_graphql(query, acme_token, id=str(charlie.pk), phone="+15550100111")

    assert answer.code == "NOT_FOUND"
    assert User.objects.values().get(pk=charlie.pk) == before


def test_devices_sessions_and_events_of_an_invited_user_are_not_listed(
    acme: Organisation, invitation: Invitation, charlie_token: str, acme_token: str
) -> None:
    query = "{ devices { totalCount } sessions { totalCount } authEvents { nodes { email } } }"
    data = admin_graphql(query, acme_token).data

    assert (data["devices"]["totalCount"], data["sessions"]["totalCount"]) == (0, 1)
    assert [event["email"] for event in data["authEvents"]["nodes"]] == [
        "",
        "",
        "charlie@example.org",
    ]
    assert acme.memberships.count() == 0


def test_a_session_of_an_invited_user_is_homes_still(
    invitation: Invitation, charlie: User, charlie_token: str, globex: Organisation
) -> None:
    session = Session.objects.find_live(charlie_token)

    assert session is not None
    assert session.organisation == globex


def test_an_invited_administrator_administers_nothing(
    acme: Organisation, charlie: User, charlie_token: str
) -> None:
    add_member(acme, email=charlie.email, role=Role.ADMINISTRATOR)

    [home] = Membership.objects.filter(user=charlie)
    assert home.organisation != acme


def test_the_inviting_organisation_does_not_learn_of_a_change_of_email(
    invitation: Invitation, charlie: User, acme_token: str
) -> None:
    User.objects.filter(pk=charlie.pk).update(email="new@example.org")

    assert users(acme_token) == [("charlie@example.org", "Invited")]
    assert users(acme_token, email="new@example.org") == []
    assert admin_graphql(USER, acme_token, id=str(charlie.pk)).data["user"] == {
        "email": "charlie@example.org",
        "name": "",
        "phone": None,
        "isActive": True,
        "createdAt": None,
    }


def test_events_about_an_invitation_name_no_user(
    invitation: Invitation, charlie_token: str
) -> None:
    user_graphql(DECLINE, charlie_token, id=str(invitation.pk))

    told = AuthEvent.objects.filter(organisation=invitation.organisation).order_by("pk")
    assert [(e.kind, e.email, e.user, e.client_address) for e in told] == [
        ("member.invited", "charlie@example.org", None, None),
        ("invitation.declined", "charlie@example.org", None, None),
    ]


# --- Lists ----------------------------------------------------------------------------------------


def test_users_lists_members_and_invited_users_by_status(
    alice: User, invitation: Invitation, acme_token: str
) -> None:
    member, invited = ("alice@example.com", "Accepted"), ("charlie@example.org", "Invited")

    assert users(acme_token) == [invited, member]
    assert users(acme_token, status="Accepted") == [member]
    assert users(acme_token, status="Invited") == [invited]
    assert users(acme_token, email="Charlie@example.org") == [invited]


def test_pages_of_members_and_invited_users_follow_one_another(
    acme: Organisation, globex: Organisation, acme_token: str
) -> None:
    for number in range(3):
        make_user(acme, f"member{number}@example.com")
        add_member(acme, email=make_user(globex, f"guest{number}@example.org").email)
    query = """query($after: String) { users(first: 2, after: $after) {
        nodes { email } pageInfo { endCursor hasNextPage } } }"""

    first = admin_graphql(query, acme_token).data["users"]
    second = admin_graphql(query, acme_token, after=first["pageInfo"]["endCursor"]).data["users"]
    third = admin_graphql(query, acme_token, after=second["pageInfo"]["endCursor"]).data["users"]

    seen = [node["email"] for page in (first, second, third) for node in page["nodes"]]
    assert seen == [
        "guest2@example.org",
        "member2@example.com",
        "guest1@example.org",
        "member1@example.com",
        "guest0@example.org",
        "member0@example.com",
    ]
    assert not third["pageInfo"]["hasNextPage"]


def test_the_user_sees_the_inviting_organisation(
    acme: Organisation, invitation: Invitation, charlie_token: str
) -> None:
    [seen] = user_graphql(INVITATIONS, charlie_token).data["invitations"]
    memberships = user_graphql(ME, charlie_token).data["me"]["memberships"]

    assert (seen["id"], seen["role"]) == (str(invitation.pk), "Member")
    assert seen["organisation"] == {"id": str(acme.pk), "name": "Acme"}
    assert [(m["organisation"]["name"], m["status"]) for m in memberships] == [
        ("Globex", "Accepted"),
        ("Acme", "Invited"),
    ]


@pytest.mark.parametrize("query", [INVITATIONS, ACCEPT, DECLINE])
def test_invitations_are_for_device_sessions(
    invitation: Invitation, acme_token: str, query: str
) -> None:
    anonymous = user_graphql(query, None, id=str(invitation.pk))
    program = user_graphql(query, acme_token, id=str(invitation.pk))

    assert (anonymous.code, program.code) == ("UNAUTHENTICATED", "FORBIDDEN")
    assert Invitation.objects.count() == 1


# --- Answering ------------------------------------------------------------------------------------


def test_an_accepted_invitation_is_a_membership(
    acme: Organisation, charlie: User, charlie_token: str, acme_token: str, globex_token: str
) -> None:
    admin_graphql(ADD, acme_token, email=charlie.email, role="Administrator")
    [invitation] = user_graphql(INVITATIONS, charlie_token).data["invitations"]

    accepted = user_graphql(ACCEPT, charlie_token, id=invitation["id"])
    phone = admin_graphql(UPDATE, globex_token, id=str(charlie.pk), phone="+15550100111")

    assert accepted.data == {"acceptInvitation": True}
    assert acme.memberships.get(user=charlie).role == Role.ADMINISTRATOR
    assert users(acme_token) == [("charlie@example.org", "Accepted")]
    assert user_graphql(INVITATIONS, charlie_token).data == {"invitations": []}
    assert phone.code == "FORBIDDEN"
    assert User.objects.get(pk=charlie.pk).phone == "+15550100100"


def test_accepting_is_on_record_where_the_user_was_at_home_only(
    acme: Organisation, globex: Organisation, invitation: Invitation, charlie_token: str
) -> None:
    user_graphql(ACCEPT, charlie_token, id=str(invitation.pk))

    told = AuthEvent.objects.filter(kind="invitation.accepted")
    assert set(told.values_list("organisation", "client_address")) == {
        (acme.pk, None),
        (globex.pk, "127.0.0.1"),
    }


def test_a_declined_invitation_has_ended(
    invitation: Invitation, charlie: User, charlie_token: str, acme_token: str
) -> None:
    declined = user_graphql(DECLINE, charlie_token, id=str(invitation.pk))

    assert declined.data == {"declineInvitation": True}
    assert users(acme_token) == []
    assert user_graphql(ACCEPT, charlie_token, id=str(invitation.pk)).code == "NOT_FOUND"
    assert charlie.memberships.count() == 1


@pytest.mark.parametrize("answer", [ACCEPT, DECLINE])
def test_an_invitation_of_another_user_cannot_be_answered(
    invitation: Invitation, charlie: User, alice: User, answer: str
) -> None:
    token = open_session(device_login(make_device_token(alice)))
    answers = [
        user_graphql(answer, token, id=one) for one in (str(invitation.pk), str(uuid.uuid4()), "x")
    ]

    assert [answer.code for answer in answers] == ["NOT_FOUND"] * 3
    assert Invitation.objects.filter(pk=invitation.pk).exists()
    assert charlie.memberships.count() == 1


def test_a_superuser_accepts_no_invitation_from_before_they_were_one(
    invitation: Invitation, charlie: User, charlie_token: str
) -> None:
    change_profile(charlie, is_superuser=True)

    asked = user_graphql(INVITATIONS, charlie_token)
    reply = user_graphql(ACCEPT, charlie_token, id=str(invitation.pk))

    assert asked.data == {"invitations": []}
    assert reply.code == "NOT_FOUND"
    assert not invitation.organisation.memberships.filter(user=charlie).exists()


@pytest.mark.parametrize("answer", [ACCEPT, DECLINE])
def test_an_inactive_organisation_waits_for_its_answers(
    acme: Organisation, invitation: Invitation, charlie: User, charlie_token: str, answer: str
) -> None:
    acme.is_active = False
    acme.save()

    refused = user_graphql(answer, charlie_token, id=str(invitation.pk))

    assert refused.code == "NOT_FOUND"
    assert user_graphql(INVITATIONS, charlie_token).data == {"invitations": []}
    assert Invitation.objects.count() == 1
    assert charlie.memberships.count() == 1


# --- Ending ---------------------------------------------------------------------------------------


def test_the_organisation_withdraws_an_invitation(
    invitation: Invitation, charlie: User, charlie_token: str, acme_token: str
) -> None:
    withdrawn = admin_graphql(REMOVE, acme_token, id=str(charlie.pk))
    again = admin_graphql(REMOVE, acme_token, id=str(charlie.pk))

    assert withdrawn.data == {"removeMember": True}
    assert again.code == "NOT_FOUND"
    assert user_graphql(ACCEPT, charlie_token, id=str(invitation.pk)).code == "NOT_FOUND"
    assert charlie.memberships.get().organisation.name == "Globex"


def test_an_expired_invitation_counts_as_gone(
    invitation: Invitation, charlie: User, charlie_token: str, acme_token: str
) -> None:
    expire(invitation)

    accepted = user_graphql(ACCEPT, charlie_token, id=str(invitation.pk))
    withdrawn = admin_graphql(REMOVE, acme_token, id=str(charlie.pk))

    assert (accepted.code, withdrawn.code) == ("NOT_FOUND", "NOT_FOUND")
    assert user_graphql(INVITATIONS, charlie_token).data == {"invitations": []}
    assert len(user_graphql(ME, charlie_token).data["me"]["memberships"]) == 1
    assert users(acme_token) == []
    assert admin_graphql(USER, acme_token, id=str(charlie.pk)).code == "NOT_FOUND"
    assert charlie.memberships.count() == 1


def test_a_user_is_invited_again_after_an_invitation_expired(
    invitation: Invitation, charlie: User, acme_token: str
) -> None:
    expire(invitation)

    admin_graphql(ADD, acme_token, email=charlie.email)

    fresh = Invitation.objects.get()
    assert fresh.pk != invitation.pk
    assert fresh.expires_at > timezone.now() + timedelta(days=13)


def test_upkeep_forgets_expired_invitations(
    invitation: Invitation, alice: User, globex: Organisation
) -> None:
    kept = add_member(globex, email=alice.email)
    expire(invitation)

    assert do_upkeep().done["forget_expired_invitations"] == 1
    assert Invitation.objects.get() == kept
