"""A key that a person approved is theirs: it shrinks and ends with them, at the next request."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.flows.api_keys import (
    issue_api_key,
    revoke_api_key,
    revoke_keys_ended_with_approver,
)
from accounts.flows.organisations import remove_member
from accounts.flows.second_factor import reset_second_factor
from accounts.flows.users import deactivate_user, take_staff_access, update_user
from accounts.models import ApiKey, AuthEvent, AuthEventKind, Membership, Organisation, Role, User
from accounts.scopes import Scope
from core.http.origin import NOWHERE
from sessions_api.models import Session
from tests.device_logins import approve, error_of, log_in, poll, start
from tests.factories import admin_graphql, bearer, make_user, post_session

pytestmark = pytest.mark.django_db

SCRIPTS = "{ scripts { totalCount } }"
PEOPLE = "{ users { totalCount } }"
CREATE = 'mutation { createApiKey(name: "made") { apiKey { id key } secret } }'
ROTATE = "mutation($id: ID!) { rotateApiKey(id: $id) { secret } }"


@pytest.fixture
def bob(bob: User) -> User:
    bob.is_staff = True
    bob.save()
    return bob


def statuses(document: dict[str, Any]) -> tuple[int, int]:
    """Of the session that is there, and of a login with the pair."""
    login = {"uid": document["key"], "password": document["secret"], "credential": "ApiKey"}
    session = Client().get("/session", headers=bearer(document["access_token"]))
    return session.status_code, post_session(Client(), login).status_code


def test_a_lowered_role_narrows_the_key_at_once(acme: Organisation, bob: User) -> None:
    token = log_in(bob, acme, "All")["access_token"]
    assert admin_graphql(PEOPLE, token).errors == []

    update_user(acme, bob, role=Role.VIEWER)

    refused = admin_graphql(PEOPLE, token)
    assert (refused.code, refused.data) == ("FORBIDDEN", None)
    assert refused.errors[0]["extensions"]["scope"] == "ReadPeople"
    assert admin_graphql(SCRIPTS, token).errors == []


def test_a_raised_role_gives_the_key_no_more_than_was_approved(
    acme: Organisation, bob: User
) -> None:
    token = log_in(bob, acme, "ReadScripts")["access_token"]

    assert admin_graphql(SCRIPTS, token).errors == []
    assert admin_graphql(PEOPLE, token).code == "FORBIDDEN"


def test_a_role_of_nothing_closes_the_graphql(acme: Organisation, bob: User) -> None:
    token = log_in(bob, acme, "All")["access_token"]

    update_user(acme, bob, role=Role.MEMBER)

    assert admin_graphql(SCRIPTS, token).code == "FORBIDDEN"
    assert admin_graphql("{ organisation { name } }", token).code == "FORBIDDEN"


def test_staff_access_taken_away_closes_the_graphql(acme: Organisation, bob: User) -> None:
    token = log_in(bob, acme, "All")["access_token"]
    assert admin_graphql(SCRIPTS, token).errors == []

    User.objects.filter(pk=bob.pk).update(is_staff=False)

    assert admin_graphql(SCRIPTS, token).code == "FORBIDDEN"


def test_the_key_ends_with_the_membership_and_stays_ended(acme: Organisation, bob: User) -> None:
    document = log_in(bob, acme)
    assert statuses(document) == (200, 201)

    remove_member(acme, bob)
    after_removal = statuses(document)
    Membership.objects.create(organisation=acme, user=bob, role=Role.ADMINISTRATOR)

    assert after_removal == (401, 401)
    assert statuses(document) == (401, 401)


def test_the_key_ends_with_the_persons_account_and_stays_ended(
    acme: Organisation, bob: User
) -> None:
    document = log_in(bob, acme)
    assert statuses(document) == (200, 201)

    deactivate_user(acme, bob)
    after = statuses(document)
    update_user(acme, bob, is_active=True)

    assert after == (401, 401)
    assert statuses(document) == (401, 401)
    assert log_in(bob, acme)["scope"] == "ReadScripts"


def test_the_key_ends_with_a_lost_second_factor(acme: Organisation, bob: User) -> None:
    document = log_in(bob, acme)

    reset_second_factor(bob)

    assert statuses(document) == (401, 401)


def test_only_the_membership_of_its_own_organisation_counts(
    acme: Organisation, globex: Organisation, bob: User
) -> None:
    Membership.objects.create(organisation=globex, user=bob, role=Role.VIEWER)
    at_acme, at_globex = log_in(bob, acme, "All"), log_in(bob, globex, "ReadScripts")

    remove_member(globex, bob)

    assert statuses(at_acme) == (200, 201)
    assert statuses(at_globex) == (401, 401)
    assert admin_graphql(PEOPLE, at_acme["access_token"]).errors == []


def test_refused_logins_of_an_ended_key_have_their_reason_on_record(
    acme: Organisation, bob: User
) -> None:
    document = log_in(bob, acme)
    remove_member(acme, bob)

    statuses(document)

    event = AuthEvent.objects.get(kind=AuthEventKind.SESSION_REFUSED)
    assert (event.reason, event.credential) == ("approver-gone", document["key"])


def test_upkeep_revokes_ended_keys_and_no_others(acme: Organisation, bob: User) -> None:
    carol = make_user(acme, "carol@example.com", role=Role.ADMINISTRATOR)
    carol.is_staff = True
    carol.save()
    ended, living = log_in(bob, acme), log_in(carol, acme)
    plain = issue_api_key(acme, name="plain").api_key
    remove_member(acme, bob)

    assert revoke_keys_ended_with_approver() == 1
    assert revoke_keys_ended_with_approver() == 0

    good = set(ApiKey.objects.filter(revoked_at=None).values_list("key", flat=True))
    event = AuthEvent.objects.get(kind=AuthEventKind.API_KEY_REVOKED)
    assert good == {living["key"], plain.key}
    assert (event.actor_kind, event.credential) == ("system", ended["key"])


def test_a_superusers_key_lasts_as_long_as_they_are_one(acme: Organisation) -> None:
    root = User.objects.create_superuser("root@example.com", "a password of root")
    document = log_in(root, acme, "All")
    assert admin_graphql(PEOPLE, document["access_token"]).errors == []

    User.objects.filter(pk=root.pk).update(is_superuser=False)

    assert statuses(document) == (401, 401)


def test_the_key_can_be_revoked(acme: Organisation, bob: User) -> None:
    document = log_in(bob, acme)

    revoke_api_key(ApiKey.objects.get())

    assert statuses(document) == (401, 401)


def test_taking_the_admin_away_ends_the_key_for_good(acme: Organisation, bob: User) -> None:
    ann = make_user(acme, "ann@example.com", role=Role.ADMINISTRATOR)
    document = log_in(bob, acme)

    take_staff_access([acme.pk], bob, by=ann, origin=NOWHERE)

    assert ApiKey.objects.get().revoked_at is not None
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    assert statuses(document) == (401, 401)
    assert AuthEvent.objects.filter(kind=AuthEventKind.API_KEY_REVOKED).count() == 1


def _leave_and_return(organisation: Organisation, user: User) -> None:
    remove_member(organisation, user)
    Membership.objects.create(organisation=organisation, user=user, role=Role.ADMINISTRATOR)


@pytest.mark.parametrize(
    "end",
    [
        lambda organisation, user: reset_second_factor(user),
        lambda organisation, user: User.objects.filter(pk=user.pk).update(is_staff=False),
        _leave_and_return,
    ],
    ids=["second factor reset", "no admin", "member again"],
)
def test_an_approval_ends_with_the_logins_and_membership_of_that_time(
    acme: Organisation, bob: User, end: Any
) -> None:
    started = start()
    approve(started, bob, acme)
    end(acme, bob)

    answer = poll(started)

    assert (answer.status_code, error_of(answer)) == (400, "access_denied")
    assert not ApiKey.objects.exists()


# --- What such a key makes -----------------------------------------------------------------------


def test_what_such_a_key_makes_ends_with_the_approver_too(acme: Organisation, bob: User) -> None:
    token = log_in(bob, acme, "All")["access_token"]
    made = admin_graphql(CREATE, token).data["createApiKey"]
    login = {"uid": made["apiKey"]["key"], "password": made["secret"], "credential": "ApiKey"}
    assert post_session(Client(), login).status_code == 201

    remove_member(acme, bob)

    assert post_session(Client(), login).status_code == 401


def test_such_a_key_rotates_none_that_would_outlive_the_approver(
    acme: Organisation, bob: User
) -> None:
    token = log_in(bob, acme, "All")["access_token"]
    own = admin_graphql(CREATE, token).data["createApiKey"]["apiKey"]
    end = timezone.now() + timedelta(days=1)
    other = issue_api_key(
        acme, name="other", scopes=[Scope.READ_SCRIPTS.value], expires_at=end
    ).api_key
    digest = ApiKey.objects.get(pk=other.pk).digest
    assert admin_graphql(ROTATE, token, id=own["id"]).errors == []

    refused = admin_graphql(ROTATE, token, id=str(other.pk))

    assert (refused.code, refused.data) == ("FORBIDDEN", None)
    assert ApiKey.objects.get(pk=other.pk).digest == digest


def test_look_up_of_such_a_session_is_one_query(
    acme: Organisation, bob: User, django_assert_num_queries: Any
) -> None:
    token = log_in(bob, acme, "All")["access_token"]
    Session.objects.find_live(token)

    with django_assert_num_queries(1):
        session = Session.objects.find_live(token)
        assert session is not None
        assert session.api_key is not None
        assert session.api_key.approver_role == Role.ADMINISTRATOR
