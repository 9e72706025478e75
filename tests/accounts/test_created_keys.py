"""A key that a program created with its login does not outlast it, and keeps nothing it loses."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.flows.api_keys import (
    IssuedApiKey,
    issue_api_key,
    revoke_api_key,
    revoke_keys_ended_with_approver,
    update_api_key,
)
from accounts.flows.minting import Maker, are_within, ends_later, within_both
from accounts.flows.organisations import remove_member
from accounts.models import ApiKey, AuthEvent, AuthEventKind, Organisation, Role
from accounts.scopes import Scope, covers
from core.errors import ForbiddenError
from core.http.origin import NOWHERE
from tests.admin.roles import make_staff
from tests.device_logins import approved, child_of, log_in
from tests.factories import (
    admin_graphql,
    api_key_login,
    make_organisation,
    open_session,
    post_session,
)

REVOKE = """mutation($id: ID!) {
    revokeApiKey(id: $id) { revokedAt keysCreated { key createdWith revokedAt } } }"""
CREATE = 'mutation { createApiKey(name: "child") { apiKey { id key } secret } }'
NARROW = """mutation($id: ID!, $scopes: [Scope!], $expiresAt: DateTime, $networks: [String!]) {
    updateApiKey(id: $id, scopes: $scopes, expiresAt: $expiresAt, allowedNetworks: $networks) {
        key } }"""
KEYS = ["ReadKeys", "WriteKeys"]


def first_key(organisation: Organisation, **given: Any) -> IssuedApiKey:
    return approved(issue_api_key(organisation, name="first", **given))


def status_of(issued: IssuedApiKey) -> int:
    return login_status(api_key_login(issued))


def login_status(login: dict[str, Any]) -> int:
    status: int = post_session(Client(), login).status_code
    return status


def test_revoking_a_key_revokes_its_children_and_theirs(
    acme: Organisation, acme_token: str
) -> None:
    parent = first_key(acme)
    child = child_of(parent.api_key)
    grandchild = child_of(child.api_key)
    beside = first_key(acme)
    tokens = [open_session(api_key_login(each)) for each in (child, grandchild)]

    answer = admin_graphql(REVOKE, acme_token, id=str(parent.api_key.pk))

    assert [status_of(each) for each in (parent, child, grandchild)] == [401, 401, 401]
    assert [admin_graphql("{ organisation { id } }", token).status for token in tokens] == [
        401,
        401,
    ]
    assert status_of(beside) == 201
    [named] = answer.data["revokeApiKey"]["keysCreated"]
    assert (named["key"], named["createdWith"]) == (child.api_key.key, str(parent.api_key.pk))
    assert named["revokedAt"] is not None


def test_each_revoked_child_is_on_record_with_the_reason(acme: Organisation) -> None:
    parent = first_key(acme)
    child = child_of(parent.api_key)

    revoke_api_key(parent.api_key)
    revoke_api_key(parent.api_key)

    events = AuthEvent.objects.filter(kind=AuthEventKind.API_KEY_REVOKED)
    assert {(event.credential, event.reason) for event in events} == {
        (parent.api_key.key, ""),
        (child.api_key.key, "created-with-it"),
    }
    assert events.count() == 2


def test_what_an_ordinary_key_created_replaces_it(acme: Organisation, acme_token: str) -> None:
    old = issue_api_key(acme, name="old")
    new = child_of(old.api_key)

    answer = admin_graphql(REVOKE, acme_token, id=str(old.api_key.pk))

    [named] = answer.data["revokeApiKey"]["keysCreated"]
    assert (named["key"], named["revokedAt"]) == (new.api_key.key, None)
    assert [status_of(each) for each in (old, new)] == [401, 201]
    assert AuthEvent.objects.filter(kind=AuthEventKind.API_KEY_REVOKED).count() == 1


def test_what_an_ordinary_key_created_keeps_what_that_one_loses(
    acme: Organisation, acme_token: str
) -> None:
    old = issue_api_key(acme, name="old")
    new = child_of(old.api_key)

    answer = admin_graphql(NARROW, acme_token, id=str(old.api_key.pk), scopes=KEYS)

    assert answer.errors == []
    assert ApiKey.objects.get(pk=new.api_key.pk).scopes == ["All"]


def test_a_child_is_revoked_alone(acme: Organisation) -> None:
    parent = first_key(acme)
    child = child_of(parent.api_key)
    sibling = child_of(parent.api_key)

    revoke_api_key(child.api_key)

    assert [status_of(each) for each in (parent, child, sibling)] == [201, 401, 201]


def test_a_key_of_a_person_outlasts_no_key(acme: Organisation) -> None:
    bob = make_staff(acme, Role.ADMINISTRATOR)
    made = issue_api_key(acme, name="by bob", created_by=bob, maker=Maker.person(bob, acme))
    before = first_key(acme)

    revoke_api_key(before.api_key)

    assert (made.api_key.created_with, status_of(made)) == (None, 201)


# --- Logins of programs ---------------------------------------------------------------------------


def test_what_an_approved_key_created_ends_with_the_approver(acme: Organisation) -> None:
    bob = make_staff(acme, Role.ADMINISTRATOR)
    token = log_in(bob, acme, "All")["access_token"]
    made = admin_graphql(CREATE, token).data["createApiKey"]
    login = {"uid": made["apiKey"]["key"], "password": made["secret"], "credential": "ApiKey"}
    assert login_status(login) == 201

    remove_member(acme, bob)

    assert login_status(login) == 401
    assert revoke_keys_ended_with_approver() == 2


# --- Narrowing ------------------------------------------------------------------------------------


def test_a_narrowed_key_takes_from_its_children_what_it_loses(
    acme: Organisation, acme_token: str
) -> None:
    parent = first_key(acme)
    child = child_of(
        child_of(parent.api_key).api_key, allowed_networks=["127.0.0.0/8", "192.0.2.0/24"]
    )
    end = (timezone.now() + timedelta(days=1)).replace(microsecond=0)
    token = open_session(api_key_login(child))

    answer = admin_graphql(
        NARROW,
        acme_token,
        id=str(parent.api_key.pk),
        scopes=KEYS,
        expiresAt=end.isoformat(),
        networks=["127.0.0.1/32", "198.51.100.0/24"],
    )

    row = ApiKey.objects.get(pk=child.api_key.pk)
    assert answer.errors == []
    assert (row.scopes, row.expires_at, row.allowed_networks) == (KEYS, end, ["127.0.0.1/32"])
    assert admin_graphql("{ apiKeys { totalCount } }", token).errors == []
    assert admin_graphql("{ users { totalCount } }", token).code == "FORBIDDEN"
    event = AuthEvent.objects.get(kind=AuthEventKind.API_KEY_CHANGED, credential=row.key)
    assert event.reason == (
        "allowed_networks, expires_at, All to ReadKeys WriteKeys, "
        f"as {parent.api_key.key}, which created it"
    )


@pytest.mark.parametrize(
    ("child", "parent"),
    [
        ({"scopes": ["ReadPeople"]}, {"scopes": KEYS}),
        ({"allowed_networks": ["192.0.2.0/24"]}, {"networks": ["127.0.0.0/8"]}),
    ],
)
def test_a_child_with_nothing_left_is_revoked_with_its_own(
    acme: Organisation, acme_token: str, child: dict[str, Any], parent: dict[str, Any]
) -> None:
    first = first_key(acme)
    made = child_of(first.api_key, **child)
    own = child_of(made.api_key).api_key
    # A person may give it more than its maker has.
    update_api_key(own, scopes=["All"], allowed_networks=[], origin=NOWHERE)

    answer = admin_graphql(NARROW, acme_token, id=str(first.api_key.pk), **parent)

    assert answer.errors == []
    for row in (made.api_key, own):
        row.refresh_from_db()
        assert row.revoked_at is not None
        event = AuthEvent.objects.get(kind=AuthEventKind.API_KEY_REVOKED, credential=row.key)
        assert event.reason == "created-with-it"


def test_widening_a_key_changes_no_other(acme: Organisation, acme_token: str) -> None:
    parent = first_key(acme, scopes=KEYS)
    child = child_of(parent.api_key).api_key

    admin_graphql(NARROW, acme_token, id=str(parent.api_key.pk), scopes=["All"])

    assert ApiKey.objects.get(pk=child.pk).scopes == KEYS
    events = AuthEvent.objects.filter(kind=AuthEventKind.API_KEY_CHANGED)
    assert [event.credential for event in events] == [parent.api_key.key]


@pytest.mark.parametrize(
    ("some", "others", "both"),
    [
        ([], [], []),
        ([], ["10.0.0.0/8"], ["10.0.0.0/8"]),
        (["10.1.0.0/16"], [], ["10.1.0.0/16"]),
        (["10.1.0.0/16", "::/0"], ["10.0.0.0/8"], ["10.1.0.0/16"]),
        (["10.0.0.0/8"], ["10.1.0.0/16", "10.2.0.0/16"], ["10.1.0.0/16", "10.2.0.0/16"]),
        (["10.0.0.0/8"], ["10.0.0.0/8"], ["10.0.0.0/8"]),
        (["10.0.0.0/8"], ["192.0.2.0/24"], None),
        (["0.0.0.0/0"], ["::/0"], None),
    ],
)
def test_networks_in_both_lists(some: list[str], others: list[str], both: list[str] | None) -> None:
    assert within_both(some, others) == both


some_limits = st.tuples(
    st.frozensets(
        st.sampled_from([Scope.READ_SCRIPTS, Scope.READ_KEYS, Scope.WRITE_KEYS, Scope.ALL]),
        min_size=1,
    ),
    st.none() | st.integers(1, 3),
    st.lists(st.sampled_from(["10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24"]), max_size=2),
)
some_steps = st.lists(
    st.tuples(st.sampled_from(["create", "narrow", "revoke"]), st.integers(0, 9), some_limits),
    max_size=12,
)


@pytest.mark.django_db
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=some_steps)
def test_no_key_ever_has_more_than_the_key_that_created_it(
    steps: list[tuple[str, int, tuple[Any, ...]]],
) -> None:
    with transaction.atomic():
        organisation, now = make_organisation(), timezone.now()
        first_key(organisation)
        for what, number, (scopes, days, networks) in steps:
            rows = list(ApiKey.objects.with_owners().order_by("created_at", "pk"))
            key = rows[number % len(rows)]
            limits = {
                "scopes": [scope.value for scope in scopes],
                "expires_at": None if days is None else now + timedelta(days=days),
                "allowed_networks": networks,
            }
            try:
                with transaction.atomic():
                    if what == "create":
                        child_of(key, **limits)
                    elif what == "narrow":
                        # By itself, so never to more than it has.
                        update_api_key(key, **limits, origin=NOWHERE, maker=Maker.key(key))
                    else:
                        revoke_api_key(key)
            except (ForbiddenError, ValidationError):
                continue
            for child in ApiKey.objects.filter(created_with__isnull=False, revoked_at=None):
                parent = child.created_with
                assert parent is not None
                assert parent.revoked_at is None
                assert covers(parent.held_scopes, child.held_scopes)
                assert not ends_later(child.expires_at, parent.expires_at)
                assert are_within(child.allowed_networks, parent.allowed_networks)
        transaction.set_rollback(True)
