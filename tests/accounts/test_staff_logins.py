"""E-mail and phone of a user with access to the admin are theirs; former addresses are told."""

from typing import Any

import pytest
from django.core import mail

from accounts.flows.invite_administrator import invite_administrator
from accounts.flows.organisations import remove_member
from accounts.flows.password_links import make_link, request_password_link, set_password_by_link
from accounts.flows.users import deactivate_user, update_user
from accounts.models import AuthEvent, Membership, Organisation, Role, User
from core.errors import ForbiddenError, NotFoundError, RateLimitedError
from core.http.origin import NOWHERE
from jobs.models import Message
from tests.concurrency import at_once
from tests.factories import GraphQLAnswer, admin_graphql, make_user, work

UPDATE = """mutation($id: ID!, $email: String, $phone: String, $name: String, $role: Role) {
    updateUser(id: $id, email: $email, phone: $phone, name: $name, role: $role) { email phone } }"""
CREATE = (
    "mutation($email: String!, $phone: String) { createUser(email: $email, phone: $phone) { id } }"
)
ADD = "mutation($email: String!) { addMember(email: $email) { email } }"
FORMER = "bob@example.com"


@pytest.fixture
def bob(bob: User) -> User:
    bob.set_password("a password of bob")
    bob.is_staff = True
    bob.save()
    return bob


def update(token: str, user: User, **changes: Any) -> GraphQLAnswer:
    return admin_graphql(UPDATE, token, id=str(user.pk), **changes)


def state_of(user: User) -> list[Any]:
    memberships = Membership.objects.filter(user=user).order_by("pk")
    events = AuthEvent.objects.exclude(kind__startswith="session.").order_by("pk")
    rows = [User.objects.filter(pk=user.pk), memberships, events, Message.objects.all()]
    return [list(each.values()) for each in rows]


def mails() -> list[tuple[list[str], str]]:
    work()
    return [(message.to, str(message.body)) for message in mail.outbox]


# --- Programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"email": "eve@example.com"}, {"email": FORMER}, {"phone": "+4915112345678"}]
)
def test_a_program_that_changes_the_login_of_staff_changes_nothing(
    bob: User, acme_token: str, change: dict[str, str]
) -> None:
    before = state_of(bob)
    answer = update(acme_token, bob, name="Eve", role="Member", **change)

    assert (answer.status, answer.code, answer.data) == (200, "FORBIDDEN", None)
    assert state_of(bob) == before
    assert mails() == []


def test_a_program_cannot_get_the_next_password_link_of_an_administrator(
    bob: User, acme_token: str
) -> None:
    answer = update(acme_token, bob, email="eve@example.com")
    for address in ("eve@example.com", FORMER):
        request_password_link(address, NOWHERE)

    assert (answer.code, answer.data) == ("FORBIDDEN", None)
    [(to, body)] = mails()
    assert to == [FORMER]
    assert "/password/link/" in body


@pytest.mark.parametrize(
    ("loss", "code"), [(remove_member, "NOT_FOUND"), (deactivate_user, "FORBIDDEN")]
)
def test_ending_a_membership_or_an_account_first_does_not_help_a_program(
    acme: Organisation, bob: User, acme_token: str, loss: Any, code: str
) -> None:
    loss(acme, bob)
    admin_graphql(ADD, acme_token, email=bob.email)
    answer = update(acme_token, bob, email="eve@example.com")

    assert (answer.code, answer.data) == (code, None)
    bob.refresh_from_db()
    assert bob.email == FORMER


def test_creating_and_adding_change_no_login(bob: User, acme_token: str) -> None:
    before = User.objects.values().get(pk=bob.pk)
    created = admin_graphql(CREATE, acme_token, email="BOB@example.com", phone="+4915112345678")
    added = admin_graphql(ADD, acme_token, email="BOB@example.com")

    assert (created.code, added.data) == ("BAD_USER_INPUT", {"addMember": {"email": FORMER}})
    assert User.objects.values().get(pk=bob.pk) == before


def test_home_still_renames_staff_and_lowers_their_role(bob: User, acme_token: str) -> None:
    answer = update(acme_token, bob, name="Robert", role="Member")

    assert answer.errors == []
    assert bob.memberships.get().role == Role.MEMBER


def test_inviting_an_administrator_changes_no_login(acme: Organisation, bob: User) -> None:
    before = (bob.email, bob.phone, bob.password)
    invite_administrator(acme, email="BOB@example.com", name="Eve", by=bob, origin=NOWHERE)

    bob.refresh_from_db()
    assert (bob.email, bob.phone, bob.password) == before


def test_a_link_of_an_invitation_is_not_sent_to_an_address_set_since(
    acme: Organisation, bob: User, acme_token: str
) -> None:
    invite_administrator(acme, email="frank@example.com", by=bob, origin=NOWHERE)
    frank = User.objects.get(email="frank@example.com")
    answer = update(acme_token, frank, email="eve@example.com")

    assert answer.errors == []
    sent = mails()
    assert [to for to, _ in sent] == [["frank@example.com"], ["eve@example.com"]]
    assert not any("/password/link/" in body for _, body in sent)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_try", range(5))
def test_an_address_changed_while_its_user_becomes_staff_gives_nobody_two(
    acme: Organisation, alice: User, _try: int
) -> None:
    update_user(acme, alice, role=Role.ADMINISTRATOR)
    link = make_link(User.objects.get(pk=alice.pk), acme)

    def change() -> object:
        return update_user(acme, alice, email="eve@example.com")

    def become_staff() -> object:
        return set_password_by_link(link, "!hash")

    def act(number: int) -> bool:
        try:
            (change, become_staff)[number]()
        except (ForbiddenError, NotFoundError):
            return False
        return True

    outcomes = at_once(2, act)

    alice.refresh_from_db()
    assert sorted(outcomes) == [False, True]
    assert (alice.email == "eve@example.com", alice.is_staff) == tuple(outcomes)


# --- Former addresses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"email": "new@example.com"}, "another e-mail address"),
        ({"phone": "+4915112345678"}, "phone number"),
        ({"phone": ""}, "phone number"),
    ],
)
def test_a_change_is_told_to_the_former_address(
    alice: User, acme_token: str, change: dict[str, str], told: str
) -> None:
    answer = update(acme_token, alice, **change)

    assert answer.errors == []
    to, body = mails()[0]
    assert to == ["alice@example.com"]
    assert told in body
    assert "new@example.com" not in body
    assert "+49" not in body


def test_a_changed_address_is_told_to_the_new_one_too(alice: User, acme_token: str) -> None:
    answer = update(acme_token, alice, email="New@example.com")

    assert answer.errors == []
    (former, _), (new, body) = mails()
    assert (former, new) == (["alice@example.com"], ["New@example.com"])
    assert "sent to this one from now on" in body
    assert "alice@example.com" not in body


def test_what_stays_the_same_is_not_told(alice: User, acme_token: str) -> None:
    update(acme_token, alice, email="ALICE@example.com", phone="+49 170 1234567", name="A")

    assert mails() == []


def test_a_change_that_no_mail_may_tell_of_is_refused(alice: User, acme_token: str) -> None:
    answers = [update(acme_token, alice, phone=f"+491510000000{n}") for n in range(10)]
    before = state_of(alice)
    refused = update(acme_token, alice, email="eve@example.com")

    assert [answer.errors for answer in answers] == [[]] * 10
    assert (refused.code, refused.data) == ("RATE_LIMITED", None)
    assert state_of(alice) == before


def test_the_mails_count_for_the_organisation(
    acme: Organisation, alice: User, bob: User, settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 1
    update_user(acme, alice, phone="")
    dora = make_user(acme, "dora@example.com")

    with pytest.raises(RateLimitedError):
        update_user(acme, dora, email="eve@example.com")
    dora.refresh_from_db()
    assert dora.email == "dora@example.com"
