"""Nobody gives what they do not have: keys, roles, and others' ways in."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.flows.api_keys import (
    IssuedApiKey,
    issue_api_key,
    rotate_api_key,
    update_api_key,
)
from accounts.flows.minting import Maker, are_within, ends_later
from accounts.flows.organisations import remove_member
from accounts.flows.users import create_user, update_user
from accounts.models import ApiKey, AuthEvent, Membership, Organisation, Role, User
from accounts.scopes import Scope, Scopes, covers
from core.errors import ForbiddenError, NotFoundError
from core.http.origin import NOWHERE
from sessions_api.models import Session
from tests.factories import (
    GraphQLAnswer,
    admin_graphql,
    api_key_login,
    device_login,
    is_accepted,
    make_device_token,
    make_organisation,
    make_user,
    open_session,
)

CREATE = """mutation($scopes: [Scope!], $expiresAt: DateTime, $networks: [String!]) {
    createApiKey(name: "made", scopes: $scopes, expiresAt: $expiresAt, allowedNetworks: $networks) {
        apiKey { key scopes expiresAt allowedNetworks } secret } }"""
UPDATE = """mutation($id: ID!, $name: String, $scopes: [Scope!], $expiresAt: DateTime) {
    updateApiKey(id: $id, name: $name, scopes: $scopes, expiresAt: $expiresAt) {
        name scopes expiresAt } }"""
ROTATE = "mutation($id: ID!) { rotateApiKey(id: $id) { secret } }"
KEYS = (Scope.READ_KEYS, Scope.WRITE_KEYS)
PEOPLE = (Scope.READ_PEOPLE, Scope.WRITE_PEOPLE)
LOCAL = ["127.0.0.0/8"]


def key_with(organisation: Organisation, *scopes: Scope, **limits: Any) -> IssuedApiKey:
    names = [scope.value for scope in scopes]
    return issue_api_key(organisation, name="narrow", scopes=names, **limits)


def token_of(issued: IssuedApiKey) -> str:
    return open_session(api_key_login(issued))


def refusal(answer: GraphQLAnswer) -> dict[str, str]:
    assert answer.status == 200
    [error] = answer.errors
    return dict(error["extensions"])


def tomorrow() -> datetime:
    return (timezone.now() + timedelta(days=1)).replace(microsecond=0)


def test_a_key_makes_one_with_its_own_scopes_expiry_and_networks(acme: Organisation) -> None:
    maker = key_with(acme, *KEYS, expires_at=tomorrow(), allowed_networks=LOCAL)

    made = admin_graphql(CREATE, token_of(maker)).data["createApiKey"]["apiKey"]

    row = ApiKey.objects.get(key=made["key"])
    assert made["scopes"] == ["ReadKeys", "WriteKeys"]
    assert (row.expires_at, row.allowed_networks) == (maker.api_key.expires_at, LOCAL)


def test_the_key_of_today_makes_one_with_all(acme_token: str) -> None:
    made = admin_graphql(CREATE, acme_token).data["createApiKey"]["apiKey"]

    assert (made["scopes"], made["expiresAt"], made["allowedNetworks"]) == (["All"], None, [])


def test_a_key_revoked_within_its_document_makes_no_other(acme: Organisation) -> None:
    issued = key_with(acme, Scope.ALL)
    answer = admin_graphql(
        """mutation($id: ID!) { revokeApiKey(id: $id) { key }
            createApiKey(name: "heir", scopes: [All]) { secret } }""",
        token=token_of(issued),
        id=str(issued.api_key.pk),
    )

    assert refusal(answer) == {"code": "FORBIDDEN"}
    assert not ApiKey.objects.filter(name="heir").exists()


@pytest.mark.parametrize(
    "change",
    [{"revoked_at": timezone.now()}, {"scopes": ["ReadKeys"]}, {"allowed_networks": LOCAL}],
)
def test_what_a_key_lost_meanwhile_it_does_not_give(
    acme: Organisation, change: dict[str, Any]
) -> None:
    former = key_with(acme, Scope.ALL)
    other = key_with(acme, Scope.ALL).api_key
    maker = Maker.key(former.api_key)
    ApiKey.objects.filter(pk=former.api_key.pk).update(**change)
    before = list(ApiKey.objects.order_by("pk").values())

    with pytest.raises(ForbiddenError):
        issue_api_key(acme, name="heir", scopes=["All"], allowed_networks=[], maker=maker)
    with pytest.raises(ForbiddenError):
        update_api_key(other, name="mine", origin=NOWHERE, maker=maker)
    with pytest.raises(ForbiddenError):
        rotate_api_key(other, origin=NOWHERE, maker=maker)
    assert list(ApiKey.objects.order_by("pk").values()) == before


def test_a_key_with_less_does_not_end_the_session_of_one_with_more(acme: Organisation) -> None:
    token = token_of(key_with(acme, Scope.ALL))
    session = Session.objects.get()
    answer = admin_graphql(
        "mutation($id: ID!) { endSession(id: $id) }",
        token=token_of(key_with(acme, *PEOPLE)),
        id=str(session.pk),
    )

    assert refusal(answer) == {"code": "FORBIDDEN", "scope": "All"}
    assert Session.objects.find_live(token) is not None


@pytest.mark.parametrize("wanted", [["ReadScripts"], ["ReadKeys", "Publish"], ["All"]])
def test_a_key_makes_none_with_more_scopes(acme: Organisation, wanted: list[str]) -> None:
    token = token_of(key_with(acme, *KEYS))
    assert admin_graphql(CREATE, token, scopes=["ReadKeys"]).errors == []

    answer = admin_graphql(CREATE, token, scopes=wanted)

    assert refusal(answer) == {"code": "FORBIDDEN", "field": "scopes", "scope": wanted[-1]}
    assert answer.data is None
    assert ApiKey.objects.count() == 2


def test_a_key_makes_none_that_expires_later(acme: Organisation) -> None:
    end = tomorrow()
    token = token_of(key_with(acme, *KEYS, expires_at=end))
    assert admin_graphql(CREATE, token, expiresAt=end.isoformat()).errors == []

    later = admin_graphql(CREATE, token, expiresAt=(end + timedelta(seconds=1)).isoformat())

    assert refusal(later) == {
        "code": "FORBIDDEN",
        "field": "expiresAt",
        "scope": "ReadKeys WriteKeys",
    }
    assert ApiKey.objects.count() == 2


@pytest.mark.parametrize(
    "networks", [[], ["0.0.0.0/0"], ["127.0.0.1/32", "192.0.2.1/32"], ["::/0"]]
)
def test_a_key_makes_none_for_other_networks(acme: Organisation, networks: list[str]) -> None:
    token = token_of(key_with(acme, *KEYS, allowed_networks=LOCAL))
    assert admin_graphql(CREATE, token, networks=["127.0.0.1/32"]).errors == []

    answer = admin_graphql(CREATE, token, networks=networks)

    assert refusal(answer)["code"] == "FORBIDDEN"
    assert refusal(answer)["field"] == "allowedNetworks"
    assert ApiKey.objects.count() == 2


def test_a_scope_that_does_not_exist_is_bad_input(acme: Organisation, acme_token: str) -> None:
    unknown = admin_graphql(CREATE, acme_token, scopes=["Everything"])
    none = admin_graphql(CREATE, acme_token, scopes=[])

    assert unknown.code == "BAD_USER_INPUT"
    assert unknown.errors[0]["extensions"]["field"] == "scopes[0]"
    assert refusal(none) == {"code": "BAD_USER_INPUT", "field": "scopes"}
    assert ApiKey.objects.count() == 1


def test_a_key_is_changed_and_both_states_are_on_record(
    acme: Organisation, acme_token: str
) -> None:
    key = key_with(acme, Scope.READ_SCRIPTS, Scope.PUBLISH).api_key
    end = tomorrow()

    answer = admin_graphql(
        UPDATE, acme_token, id=str(key.pk), scopes=["ReadScripts"], expiresAt=end.isoformat()
    )

    assert answer.data["updateApiKey"]["scopes"] == ["ReadScripts"]
    assert ApiKey.objects.get(pk=key.pk).expires_at == end
    [event] = AuthEvent.objects.filter(kind="api-key.changed")
    assert event.reason == "expires_at, ReadScripts Publish to ReadScripts"
    issued = AuthEvent.objects.get(kind="api-key.issued", credential=key.key)
    assert issued.reason == "ReadScripts Publish"


def test_a_key_that_stays_as_it_was_is_not_on_record_as_changed(
    acme: Organisation, acme_token: str
) -> None:
    end = tomorrow()
    key = key_with(acme, Scope.READ_SCRIPTS, expires_at=end).api_key
    ApiKey.objects.filter(pk=key.pk).update(expiry_notice_days=7)
    same = {"name": "narrow", "scopes": ["ReadScripts"], "expiresAt": end.isoformat()}

    answers = [admin_graphql(UPDATE, acme_token, id=str(key.pk), **given) for given in ({}, same)]

    assert [answer.errors for answer in answers] == [[], []]
    assert not AuthEvent.objects.filter(kind="api-key.changed").exists()
    # Its owners know of the expiry already.
    assert ApiKey.objects.get(pk=key.pk).expiry_notice_days == 7


@pytest.mark.parametrize("change", [{"name": "mine"}, {"scopes": ["ReadKeys"]}])
def test_a_key_does_not_change_one_with_more(acme: Organisation, change: Any) -> None:
    token = token_of(key_with(acme, *KEYS))
    weak, strong = key_with(acme, *KEYS).api_key, key_with(acme, Scope.ALL).api_key
    assert admin_graphql(UPDATE, token, id=str(weak.pk), **change).errors == []

    answer = admin_graphql(UPDATE, token, id=str(strong.pk), **change)

    assert refusal(answer)["scope"] == "All"
    strong.refresh_from_db()
    assert (strong.name, strong.scopes) == ("narrow", ["All"])


def test_a_key_does_not_widen_itself(acme: Organisation) -> None:
    end = tomorrow()
    own = key_with(acme, *KEYS, expires_at=end)
    token = token_of(own)

    wider = admin_graphql(UPDATE, token, id=str(own.api_key.pk), scopes=["All"])
    longer = admin_graphql(UPDATE, token, id=str(own.api_key.pk), expiresAt=None)

    assert (refusal(wider)["code"], refusal(longer)["code"]) == ("FORBIDDEN", "FORBIDDEN")
    row = ApiKey.objects.get(pk=own.api_key.pk)
    assert (row.scopes, row.expires_at) == (["ReadKeys", "WriteKeys"], end)


@pytest.mark.parametrize(
    "wider", [{"scopes": ["All"]}, {"expires_at": None}, {"allowed_networks": []}]
)
def test_a_key_with_more_is_not_rotated(acme: Organisation, wider: dict[str, Any]) -> None:
    limits: dict[str, Any] = {"expires_at": tomorrow(), "allowed_networks": LOCAL}
    token = token_of(key_with(acme, *KEYS, **limits))
    other = key_with(acme, *KEYS, **limits).api_key
    assert admin_graphql(ROTATE, token, id=str(other.pk)).errors == []
    before = ApiKey.objects.get(pk=other.pk).digest
    ApiKey.objects.filter(pk=other.pk).update(**wider)

    answer = admin_graphql(ROTATE, token, id=str(other.pk))

    assert refusal(answer)["code"] == "FORBIDDEN"
    assert ApiKey.objects.get(pk=other.pk).digest == before


INVITE = (
    """mutation($email: String!, $role: Role) { addMember(email: $email, role: $role) { id } }"""
)
CREATE_USER = """mutation($role: Role) {
    createUser(email: "eve@example.com", role: $role) { id } }"""
SET_USER = """mutation($id: ID!, $role: Role, $email: String, $phone: String, $active: Boolean,
        $name: String) {
    updateUser(id: $id, role: $role, email: $email, phone: $phone, isActive: $active, name: $name) {
        id } }"""


@pytest.mark.parametrize("role", ["Viewer", "Operator", "Author", "Administrator"])
def test_a_role_is_given_only_with_its_scopes(acme: Organisation, alice: User, role: str) -> None:
    token = token_of(key_with(acme, *PEOPLE))
    enough = token_of(key_with(acme, *PEOPLE, *Role[role.upper()].scopes))

    given = admin_graphql(SET_USER, token, id=str(alice.pk), role=role)
    created = admin_graphql(CREATE_USER, token, role=role)

    assert refusal(given)["code"] == refusal(created)["code"] == "FORBIDDEN"
    assert refusal(given)["scope"] == refusal(created)["scope"] != ""
    assert alice.memberships.get().role == Role.MEMBER
    assert not User.objects.filter(email="eve@example.com").exists()
    assert admin_graphql(SET_USER, enough, id=str(alice.pk), role=role).errors == []
    assert alice.memberships.get().role == role.lower()


def test_a_key_that_expires_from_few_networks_gives_a_role_that_stays(
    acme: Organisation, alice: User
) -> None:
    """A role has neither expiry nor networks: giving it takes its scopes only."""
    scopes = (*PEOPLE, *Role.VIEWER.scopes)
    token = token_of(key_with(acme, *scopes, expires_at=tomorrow(), allowed_networks=LOCAL))

    given = admin_graphql(SET_USER, token, id=str(alice.pk), role="Viewer")
    ApiKey.objects.update(expires_at=timezone.now())

    assert given.errors == []
    assert admin_graphql(SET_USER, token, id=str(alice.pk), role="Member").status == 401
    assert alice.memberships.get().role == Role.VIEWER


def test_an_invitation_gives_no_more_either(acme: Organisation, charlie: User) -> None:
    token = token_of(key_with(acme, *PEOPLE))

    answer = admin_graphql(INVITE, token, email=charlie.email, role="Author")

    assert refusal(answer)["code"] == "FORBIDDEN"
    assert charlie.invitations.count() == 0


def test_an_invitation_of_one_with_more_is_not_taken_back(
    acme: Organisation, acme_token: str, charlie: User
) -> None:
    token = token_of(key_with(acme, *PEOPLE))
    admin_graphql(INVITE, acme_token, email=charlie.email, role="Author")

    lowered = admin_graphql(INVITE, token, email=charlie.email, role="Member")
    withdrawn = admin_graphql(
        "mutation($id: ID!) { removeMember(user: $id) }", token, id=str(charlie.pk)
    )

    assert refusal(lowered)["code"] == refusal(withdrawn)["code"] == "FORBIDDEN"
    assert charlie.invitations.get().role == Role.AUTHOR


@pytest.mark.parametrize(
    "change",
    [
        {"role": "Member"},
        {"email": "eve@example.com"},
        {"phone": "+491709999999"},
        {"active": False},
    ],
)
def test_one_with_more_scopes_is_not_touched(
    acme: Organisation, alice: User, bob: User, change: dict[str, Any]
) -> None:
    token = token_of(key_with(acme, *PEOPLE))
    assert admin_graphql(SET_USER, token, id=str(alice.pk), **change).errors == []
    before = User.objects.filter(pk=bob.pk).values().get()

    answer = admin_graphql(SET_USER, token, id=str(bob.pk), **change)

    assert (refusal(answer)["code"], refusal(answer)["scope"]) == ("FORBIDDEN", "All")
    assert User.objects.filter(pk=bob.pk).values().get() == before
    assert bob.memberships.get().role == Role.ADMINISTRATOR


@pytest.mark.parametrize(
    "mutation",
    ["deactivateUser(id: $id) { id }", "unlockUser(id: $id) { id }", "removeMember(user: $id)"],
)
def test_one_with_more_scopes_is_neither_locked_out_nor_removed(
    acme: Organisation, alice: User, bob: User, mutation: str
) -> None:
    token = token_of(key_with(acme, *PEOPLE))
    query = f"mutation($id: ID!) {{ {mutation} }}"
    assert admin_graphql(query, token, id=str(alice.pk)).errors == []

    answer = admin_graphql(query, token, id=str(bob.pk))

    assert refusal(answer)["scope"] == "All"
    assert User.objects.get(pk=bob.pk).is_active
    assert bob.memberships.count() == 1


ENDING_A_USER = [
    "deactivateUser(id: $id) { id }",
    "updateUser(id: $id, isActive: false) { id }",
    "updateUser(id: $id, isActive: true) { id }",
    "unlockUser(id: $id) { id }",
]


@pytest.mark.parametrize("mutation", ENDING_A_USER)
def test_one_with_a_role_elsewhere_is_left_alone_below_administrator(
    acme: Organisation, acme_token: str, globex: Organisation, alice: User, mutation: str
) -> None:
    there = alice.memberships.create(organisation=globex)
    token = token_of(key_with(acme, *PEOPLE, *Role.OPERATOR.scopes))
    query = f"mutation($id: ID!) {{ {mutation} }}"
    assert admin_graphql(query, token, id=str(alice.pk)).errors == []
    User.objects.update(is_active=True)
    there.role = Role.VIEWER
    there.save()
    before = User.objects.filter(pk=alice.pk).values().get()

    answer = admin_graphql(query, token, id=str(alice.pk))

    assert (refusal(answer)["code"], refusal(answer)["scope"]) == ("FORBIDDEN", "All")
    assert User.objects.filter(pk=alice.pk).values().get() == before
    assert admin_graphql(query, acme_token, id=str(alice.pk)).errors == []


def test_a_device_and_a_session_of_one_with_a_role_elsewhere_stay(
    acme: Organisation, acme_token: str, globex: Organisation, alice: User
) -> None:
    alice.memberships.create(organisation=globex, role=Role.ADMINISTRATOR)
    device = make_device_token(alice)
    session = Session.objects.find_live(open_session(device_login(device)))
    assert session is not None
    token = token_of(key_with(acme, *PEOPLE))
    end, revoke = "endSession(id: $id)", "revokeDevice(tokenId: $id)"
    wanted = [(end, str(session.pk)), (revoke, str(device.device_token.pk))]

    refused = [
        admin_graphql(f"mutation($id: ID!) {{ {what} }}", token, id=of) for what, of in wanted
    ]

    assert [refusal(answer)["scope"] for answer in refused] == ["All", "All"]
    assert Session.objects.filter(pk=session.pk).exists()
    assert is_accepted(device)
    done = [
        admin_graphql(f"mutation($id: ID!) {{ {what} }}", acme_token, id=of) for what, of in wanted
    ]
    assert [answer.errors for answer in done] == [[], []]


def test_a_role_elsewhere_does_not_keep_a_role_here(
    acme: Organisation, globex: Organisation, charlie: User
) -> None:
    charlie.memberships.create(organisation=acme)
    token = token_of(key_with(acme, *PEOPLE, *Role.VIEWER.scopes))

    raised = admin_graphql(SET_USER, token, id=str(charlie.pk), role="Viewer")
    removed = admin_graphql(
        "mutation($id: ID!) { removeMember(user: $id) }", token, id=str(charlie.pk)
    )

    assert (raised.errors, removed.errors) == ([], [])
    assert [place.organisation for place in charlie.memberships.all()] == [globex]


def test_the_name_of_one_with_more_scopes_is_changed(acme: Organisation, bob: User) -> None:
    token = token_of(key_with(acme, *PEOPLE))

    named = admin_graphql(SET_USER, token, id=str(bob.pk), name="Robert")
    together = admin_graphql(SET_USER, token, id=str(bob.pk), name="Eve", active=False)

    assert (named.errors, refusal(together)["scope"]) == ([], "All")
    bob.refresh_from_db()
    assert (bob.name, bob.is_active) == ("Robert", True)


def test_a_network_lies_within_one_of_the_same_version() -> None:
    assert are_within(["192.0.2.1/32"], ["198.51.100.0/24", "192.0.2.0/24"])
    assert are_within(["192.0.2.1/32"], [])
    assert not are_within([], ["192.0.2.0/24"])
    assert not are_within(["192.0.2.0/23"], ["192.0.2.0/24"])
    assert not are_within(["::ffff:192.0.2.1/128"], ["192.0.2.0/24"])


def test_no_end_is_later_than_every_end() -> None:
    now = timezone.now()

    assert ends_later(None, now)
    assert ends_later(now + timedelta(seconds=1), now)
    assert not ends_later(now, now)
    assert not ends_later(None, None)
    assert not ends_later(now, None)


SCOPES = [
    Scope.READ_SCRIPTS,
    Scope.READ_PAYLOADS,
    Scope.PUBLISH,
    Scope.WRITE_KEYS,
    Scope.WRITE_PEOPLE,
    Scope.ALL,
]
NETWORKS = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "192.0.2.0/24", "2001:db8::/32"]
some_scopes = st.frozensets(st.sampled_from(SCOPES), min_size=1, max_size=4)
some_days = st.none() | st.integers(1, 4)
some_networks = st.lists(st.sampled_from(NETWORKS), max_size=2, unique=True)
limits = st.tuples(some_scopes, some_days, some_networks)
steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "bare", "update", "rotate", "role", "add", "remove", "user"]),
        st.integers(0, 7),
        st.integers(0, 7),
        limits,
        st.sampled_from(list(Role)),
    ),
    max_size=12,
)


class Town:
    """Keys and people of one organisation, and what the makers of each had when they acted."""

    def __init__(self, first: list[tuple[Scopes, int | None, list[str]]]) -> None:
        self.now = timezone.now()
        self.organisation = make_organisation()
        self.keys = [self._key(*each) for each in first]
        self.people = [
            make_user(self.organisation, f"{role}@example.com", role=role, name="x")
            for role in Role
        ]
        # The addresses and numbers of staff are nobody's else to change.
        User.objects.exclude(memberships__role__in=[Role.MEMBER, Role.VIEWER]).update(is_staff=True)

    def _key(self, scopes: Scopes, days: int | None, networks: list[str]) -> ApiKey:
        return issue_api_key(
            self.organisation,
            name="k",
            scopes=[scope.value for scope in scopes],
            expires_at=self.end(days),
            allowed_networks=networks,
        ).api_key

    def end(self, days: int | None) -> datetime | None:
        return None if days is None else self.now + timedelta(days=days)

    def maker(self, number: int) -> Maker:
        """One of the keys, or one of the people, as it is now."""
        keys = list(ApiKey.objects.order_by("created_at", "pk"))
        number %= len(keys) + len(self.people)
        if number < len(keys):
            return Maker.key(keys[number])
        person = self.people[number - len(keys)]
        return Maker.person(User.objects.get(pk=person.pk), self.organisation)

    def state(self) -> dict[str, tuple[Any, ...]]:
        """What each holds, and the secrets and addresses by which one would get in."""
        keys = {
            f"key {key.pk}": (
                key.held_scopes,
                key.expires_at,
                tuple(key.allowed_networks),
                key.digest,
            )
            for key in ApiKey.objects.all()
        }
        roles = Membership.objects.select_related("user")
        return keys | {
            f"user {row.user.email}": (row.scopes, None, (), row.user.phone) for row in roles
        }


def _is_at_most(who: str, held: tuple[Any, ...], maker: Maker) -> bool:
    scopes, end, networks, _ = held
    if who.startswith("user "):  # Only keys end, and are bound to networks.
        return covers(maker.scopes, scopes)
    return (
        covers(maker.scopes, scopes)
        and not ends_later(end, maker.expires_at)
        and are_within(networks, maker.networks)
    )


def _act(town: Town, maker: Maker, step: tuple[Any, ...]) -> None:
    what, _, target, (scopes, days, networks), role = step
    keys = list(ApiKey.objects.order_by("created_at", "pk"))
    key, person = keys[target % len(keys)], town.people[target % len(town.people)]
    names = [scope.value for scope in scopes]
    place, end = town.organisation, town.end(days)
    match what:
        case "create":
            issue_api_key(
                place,
                name="k",
                scopes=names,
                expires_at=end,
                allowed_networks=networks,
                maker=maker,
            )
        case "bare":
            issue_api_key(place, name="k", maker=maker)
        case "update":
            update_api_key(
                key,
                scopes=names,
                expires_at=end,
                allowed_networks=networks,
                origin=NOWHERE,
                maker=maker,
            )
        case "rotate":
            rotate_api_key(key, origin=NOWHERE, maker=maker)
        case "role":
            update_user(place, person, role=role, maker=maker)
        case "add":
            create_user(place, email=f"n{target}{role}@example.com", role=role, maker=maker)
        case "remove":
            remove_member(place, person, maker=maker)
        case "user":
            update_user(place, person, phone=f"+4917012345{target:02}", maker=maker)


@pytest.mark.django_db
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.lists(limits, min_size=1, max_size=3), steps=steps)
def test_nobody_ends_with_more_than_its_maker_had(
    first: list[tuple[Scopes, int | None, list[str]]],
    steps: list[tuple[Any, ...]],
) -> None:
    with transaction.atomic():
        town = Town(first)
        for step in steps:
            maker, before = town.maker(step[1]), town.state()
            try:
                with transaction.atomic():
                    _act(town, maker, step)
            except (ForbiddenError, NotFoundError, ValidationError):
                assert town.state() == before
                continue
            changed = {who: now for who, now in town.state().items() if before.get(who) != now}
            # Their own phone is everybody's to change.
            own = f"user {maker.user.email}" if maker.user else ""
            changed.pop(own, None)
            assert all(_is_at_most(*each, maker) for each in changed.items()), (step, maker)
            lost = before.keys() - town.state().keys()
            assert all(covers(maker.scopes, before[who][0]) for who in lost)
            touched = [before[who] for who in changed if who in before]
            assert all(covers(maker.scopes, held[0]) for held in touched)
        transaction.set_rollback(True)
